//! What holds for a turn: the flag, else the environment, else the configuration, else the adapter's
//! default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest time that can be waited for, in milliseconds.
pub const MAX_MS: u64 = 2_147_483_647;

/// A turn's budget unless said otherwise.
const TIMEOUT_MS: u64 = 15 * 60_000;
/// How long a writer of JSON lines may be silent.
const STALL_MS: u64 = 15 * 60_000;
/// Between asking and killing.
const GRACE_MS: u64 = 15_000;
/// What the wall clock allows above the budget, for an adapter that keeps to it by itself.
const BACKSTOP_MS: u64 = 60_000;

/// `[turn]` of the configuration. Times are milliseconds, 0 switches one off.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnConfig {
    /// A turn's budget.
    pub timeout_ms: Option<u64>,
    /// How long it may make no progress.
    pub stall_ms: Option<u64>,
    /// How long to its first byte.
    pub startup_ms: Option<u64>,
    /// Between asking it to end and killing it.
    pub cancel_grace_ms: Option<u64>,
    /// How long it may take in all.
    pub wall_backstop_ms: Option<u64>,
    /// By name what holds for one adapter.
    pub adapters: BTreeMap<String, AdapterConfig>,
}

/// What holds for one adapter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdapterConfig {
    /// How long it may make no progress.
    pub stall_ms: Option<u64>,
    /// Whether its progress is told in whole lines.
    pub json_lines: Option<bool>,
    /// Whether it ends on SIGINT.
    pub interrupt: Option<bool>,
}

/// What the command line says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flags {
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// `--stall`.
    pub stall: Option<Duration>,
    /// `--startup`.
    pub startup: Option<Duration>,
    /// `--grace`.
    pub grace: Option<Duration>,
}

/// What holds. Times are milliseconds, at most [`MAX_MS`]; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The turn's budget, which what is run keeps to by itself.
    pub timeout_ms: u64,
    /// How long it may make no progress.
    pub stall_ms: u64,
    /// How long to its first byte.
    pub startup_ms: u64,
    /// Between asking it to end and killing it.
    pub grace_ms: u64,
    /// How long it may take in all.
    pub wall_ms: u64,
    /// Whether only whole lines are progress.
    pub json_lines: bool,
    /// Whether it is asked to end by SIGINT.
    pub interrupt: bool,
}

impl Settings {
    /// What holds for `adapter`, and what is to be said of that, safe to print.
    pub fn resolve(
        adapter: &str,
        flags: &Flags,
        env: impl Fn(&str) -> Option<OsString>,
        config: &TurnConfig,
    ) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let own = config.adapters.get(adapter).cloned().unwrap_or_default();
        let json_lines = own.json_lines.unwrap_or(matches!(adapter, "codex" | "pi-json"));
        let named = variable_part(adapter);
        let flag =
            |time: Option<Duration>| time.map(|time| u64::try_from(time.as_millis()).unwrap_or(MAX_MS));

        let stall = flag(flags.stall)
            .or_else(|| from_environment(&format!("STALL_MS_{named}"), &env, &mut warnings))
            .or_else(|| from_environment("STALL_MS", &env, &mut warnings))
            .or(own.stall_ms)
            .or(config.stall_ms.filter(|_| json_lines));
        let timeout = flag(flags.timeout).or(config.timeout_ms);
        let grace = flag(flags.grace)
            .or_else(|| from_environment("CANCEL_GRACE_MS", &env, &mut warnings))
            .or(config.cancel_grace_ms);
        let wall = from_environment("WALL_BACKSTOP_MS", &env, &mut warnings).or(config.wall_backstop_ms);
        let startup = flag(flags.startup).or(config.startup_ms.filter(|_| json_lines));

        let timeout_ms = timeout.unwrap_or(TIMEOUT_MS).min(MAX_MS);
        let stall_ms = stall.unwrap_or(if json_lines { STALL_MS } else { 0 }).min(MAX_MS);
        let with_backstop = if timeout_ms == 0 { 0 } else { timeout_ms + BACKSTOP_MS };
        let wall_ms = wall.unwrap_or(with_backstop).min(MAX_MS);
        let limits = [("turn's budget", timeout_ms), ("wall clock's limit", wall_ms)];
        let first = limits.into_iter().find(|(_, limit)| stall_ms > 0 && *limit > 0 && stall_ms >= *limit);
        if let Some((what, limit)) = first {
            warnings.push(format!(
                "the stall window of {stall_ms} ms can't fire before the {what} of {limit} ms"
            ));
        }
        let settings = Self {
            timeout_ms,
            stall_ms,
            startup_ms: startup.unwrap_or(0).min(MAX_MS),
            grace_ms: grace.unwrap_or(GRACE_MS).min(MAX_MS),
            wall_ms,
            json_lines,
            interrupt: own.interrupt.unwrap_or(true),
        };
        (settings, warnings)
    }
}

/// `PI_JSON` of `pi-json`.
fn variable_part(adapter: &str) -> String {
    adapter.chars().map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' }).collect()
}

/// Our variable of that name, else the one of the same meaning elsewhere. What is no whole number of
/// milliseconds is told and passed over.
fn from_environment(
    name: &str,
    env: &impl Fn(&str) -> Option<OsString>,
    warnings: &mut Vec<String>,
) -> Option<u64> {
    ["HEADMAN_TURN", "COMMONLY_SUPERVISE"].into_iter().find_map(|prefix| {
        let variable = format!("{prefix}_{name}");
        let value = env(&variable).filter(|value| !value.is_empty())?;
        let digits = value.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(digits) = digits else {
            warnings.push(format!("{variable} is not a whole number of milliseconds and is passed over"));
            return None;
        };
        // More digits than fit are more than can be waited for.
        Some(digits.parse().unwrap_or(MAX_MS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(adapter: &str, flags: Flags, vars: &[(&str, &str)], config: &str) -> (Settings, Vec<String>) {
        let config: TurnConfig = toml::from_str(config).unwrap();
        let env = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        Settings::resolve(adapter, &flags, env, &config)
    }

    fn stall(adapter: &str, vars: &[(&str, &str)]) -> (u64, usize) {
        // Nothing is to be said of the budget here.
        let flags = Flags { timeout: Some(Duration::from_secs(3_600)), ..Flags::default() };
        let (settings, warnings) = resolve(adapter, flags, vars, "");
        (settings.stall_ms, warnings.len())
    }

    #[test]
    fn adapters_that_write_lines_stall_and_others_do_not() {
        for (adapter, stall_ms, json_lines) in [
            ("codex", STALL_MS, true),
            ("pi-json", STALL_MS, true),
            ("claude", 0, false),
            ("pi", 0, false),
            ("x", 0, false),
        ] {
            let (settings, warnings) = resolve(adapter, Flags::default(), &[], "");
            assert_eq!((settings.stall_ms, settings.json_lines), (stall_ms, json_lines), "{adapter}");
            assert_eq!(
                (settings.timeout_ms, settings.wall_ms, settings.grace_ms),
                (900_000, 960_000, 15_000)
            );
            // By default the one is as long as the other.
            assert_eq!((settings.startup_ms, warnings.len()), (0, usize::from(json_lines)));
        }
    }

    #[test]
    fn the_most_specific_one_counts() {
        let vars = [
            ("COMMONLY_SUPERVISE_STALL_MS_PI_JSON", "4"),
            ("HEADMAN_TURN_STALL_MS", "5"),
            ("COMMONLY_SUPERVISE_STALL_MS", "6"),
        ];
        let both = [&vars[..], &[("HEADMAN_TURN_STALL_MS_PI_JSON", "3")]].concat();
        let flags = Flags { stall: Some(Duration::from_millis(2)), ..Flags::default() };
        assert_eq!(resolve("pi-json", flags, &both, "stall_ms = 9").0.stall_ms, 2);
        assert_eq!(stall("pi-json", &both).0, 3);
        assert_eq!(stall("pi-json", &vars).0, 4);
        assert_eq!(stall("codex", &vars).0, 5);
        assert_eq!(stall("codex", &vars[2..]).0, 6);
        let config = "stall_ms = 9\nstartup_ms = 8\ncancel_grace_ms = 7\n[adapters.claude]\nstall_ms = 10\ninterrupt = false\n";
        let of = |adapter: &str| resolve(adapter, Flags::default(), &[], config).0;
        assert_eq!((of("codex").stall_ms, of("claude").stall_ms, of("pi").stall_ms), (9, 10, 0));
        assert_eq!((of("codex").startup_ms, of("claude").startup_ms, of("pi").grace_ms), (8, 0, 7));
        assert_eq!((of("codex").interrupt, of("claude").interrupt), (true, false));
    }

    #[test]
    fn what_is_no_whole_number_is_told_and_zero_is_off() {
        for bad in ["-1", "1.5", "+5", " 5", "5s", "1e3"] {
            assert_eq!(stall("codex", &[("HEADMAN_TURN_STALL_MS", bad)]), (STALL_MS, 1), "{bad}");
        }
        assert_eq!(stall("codex", &[("HEADMAN_TURN_STALL_MS", "")]), (STALL_MS, 0));
        let passed_over = [("HEADMAN_TURN_STALL_MS", "x"), ("COMMONLY_SUPERVISE_STALL_MS", "7")];
        assert_eq!(stall("codex", &passed_over), (7, 1));
        assert_eq!(stall("codex", &[("HEADMAN_TURN_STALL_MS", "0")]), (0, 0));
        let (settings, _) =
            resolve("codex", Flags { timeout: Some(Duration::ZERO), ..Flags::default() }, &[], "");
        assert_eq!((settings.timeout_ms, settings.wall_ms), (0, 0));
    }

    #[test]
    fn no_time_is_longer_than_can_be_waited_for() {
        let vars = [
            ("HEADMAN_TURN_WALL_BACKSTOP_MS", "99999999999999999999999"),
            ("HEADMAN_TURN_CANCEL_GRACE_MS", "3000000000"),
        ];
        let flags = Flags { timeout: Some(Duration::MAX), ..Flags::default() };
        let (settings, _) = resolve("pi", flags, &vars, "");
        assert_eq!((settings.wall_ms, settings.grace_ms, settings.timeout_ms), (MAX_MS, MAX_MS, MAX_MS));
        assert_eq!(resolve("pi", flags, &[], "").0.wall_ms, MAX_MS);
    }

    #[test]
    fn a_stall_window_as_long_as_the_budget_is_told() {
        let flags = |stall: u64, timeout: u64| Flags {
            stall: Some(Duration::from_millis(stall)),
            timeout: Some(Duration::from_millis(timeout)),
            ..Flags::default()
        };
        for (stall, timeout, told) in [(10, 10, 1), (11, 10, 1), (9, 10, 0), (0, 10, 0), (10, 0, 0)] {
            assert_eq!(resolve("x", flags(stall, timeout), &[], "").1.len(), told, "{stall} {timeout}");
        }
        // Also where the wall clock is the nearer one, or the only one.
        for (timeout, wall, told) in
            [("20", "10", "wall clock"), ("0", "10", "wall clock"), ("9", "9", "budget")]
        {
            let flags = flags(10, timeout.parse().unwrap());
            let warnings = resolve("x", flags, &[("HEADMAN_TURN_WALL_BACKSTOP_MS", wall)], "").1;
            assert!(warnings.len() == 1 && warnings[0].contains(told), "{timeout} {wall}: {warnings:?}");
        }
    }
}
