//! `headman config`: the configuration's path, what holds, and a commented one to begin with.

use std::path::Path;

use clap::Subcommand;

use super::failure::{Exit, Failure};
use super::misconfigured;
use super::out::Out;
use crate::config::{Config, Places, TEMPLATE};
use crate::contract::json::ObjectWriter;
use crate::disk::durable;

/// What is wanted.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Verb {
    /// Write a configuration with every setting, commented out; never over one that is there
    Init,
    /// Print the configuration that holds
    Show,
    /// Print where the configuration is
    Path,
}

/// Runs the verb.
///
/// # Errors
/// [`Failure`] where the file is there already, can't be written, or can't be used.
pub fn run(places: &Places, verb: Verb, out: &mut Out) -> Result<Exit, Failure> {
    let path = &places.config;
    match verb {
        Verb::Init => {
            init(path)?;
            tell(path, out)
        }
        Verb::Path => tell(path, out),
        Verb::Show => {
            let config = Config::load(path, places.config_is_named).map_err(|error| misconfigured(&error))?;
            let failed =
                |error: &dyn std::fmt::Display| Failure::disk("show the configuration", error, "Try again");
            if out.is_json() {
                out.json(&serde_json::to_string(&config).map_err(|error| failed(&error))?)?;
            } else {
                out.text(toml::to_string(&config).map_err(|error| failed(&error))?.trim_end())?;
            }
            Ok(Exit::Done)
        }
    }
}

fn tell(path: &Path, out: &mut Out) -> Result<Exit, Failure> {
    let shown = durable::shown(path).to_string();
    if out.is_json() {
        let object = ObjectWriter::new().string("path", &shown.as_str().into()).finish();
        out.json(&String::from_utf8_lossy(&object))?;
    } else {
        out.text(&shown)?;
    }
    Ok(Exit::Done)
}

fn init(path: &Path) -> Result<(), Failure> {
    const WHAT: &str = "write a configuration";
    let failed =
        |error: &dyn std::fmt::Display| Failure::disk(WHAT, error, "Name another place with --config");
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(|error| failed(&error))?;
    }
    if durable::kind(path).map_err(|error| failed(&error))?.is_some() {
        return Err(Failure::new(
            Exit::No,
            "exists",
            format!("can't {WHAT}: {} is there already", durable::shown(path)),
            "Look at it with `headman config show`, or name another place with --config",
        ));
    }
    durable::create(path, TEMPLATE.as_bytes()).map_err(|error| failed(&error))
}
