//! Times of day as the operator's clock has them.

use crate::contract::Timestamp;

/// A time of day on the operator's clock, `09:12`.
pub(super) fn time(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M").to_string(),
        Err(_) => "?".to_owned(),
    }
}

/// The minute of the day on the operator's clock, 0 to 1439.
pub(super) fn minute(at: Timestamp) -> u16 {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).map_or(0, |at| {
        let at = at.to_zoned_datetime(jiff::tz::TimeZone::system());
        u16::from(at.hour().unsigned_abs()) * 60 + u16::from(at.minute().unsigned_abs())
    })
}
