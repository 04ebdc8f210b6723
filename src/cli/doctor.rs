use super::*;
/// x
pub fn run(
    _: &crate::config::Places,
    _: bool,
    _: &crate::config::Environment<'_>,
    _: &mut out::Out,
) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
