//! Credentials in a text, by how they look.

/// What stands in their place.
const MASK: &str = "[masked]";
/// What tokens of known services begin with, and how many characters follow at least.
const BEGINNINGS: &[(&str, usize)] = &[
    ("sk-", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("ghu_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxa-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("npm_", 20),
    ("eyJ", 24),
];
/// No token is of fewer characters.
const SHORTEST: usize = 12;
/// Names behind which, with `=` or `:`, a secret stands.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "private_key",
];
/// Letters and digits running that no word has.
const LONG_BASE64: usize = 40;
const LONG_HEX: usize = 32;

/// `text` with everything that looks like a credential masked. Rather too much than too little.
pub fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // A key in a block of its own goes as a whole, whatever it holds.
    while let Some(at) = rest.find("-----BEGIN") {
        out.push_str(&words(&rest[..at]));
        out.push_str(MASK);
        let end = rest[at..].find("-----END").map(|end| at + end);
        let end = end.and_then(|end| rest[end + 8..].find("-----").map(|more| end + 8 + more + 5));
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    out.push_str(&words(rest));
    out
}

fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '+' | '/' | '=' | '.' | '~')
}

fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Whether what comes next is a value, by what stood before it.
    let mut value_follows = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        if end == 0 {
            let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
            // Quotes, colons and spaces may stand between a name and its value.
            value_follows &= matches!(&rest[..next], ":" | " " | "\"" | "'" | "\t");
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        }
        let word = &rest[..end];
        rest = &rest[end..];
        let was_value = std::mem::take(&mut value_follows);
        let lower = word.to_ascii_lowercase();
        if was_value && lower != "bearer" && lower != "basic" {
            out.push_str(MASK);
        } else if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
            out.push_str(name);
            out.push('=');
            if value.is_empty() {
                value_follows = true;
            } else {
                out.push_str(MASK);
            }
        } else if is_token(word) {
            out.push_str(MASK);
        } else {
            let before_colon = rest.trim_start_matches(['"', '\'']).starts_with(':');
            value_follows = lower == "bearer" || was_value || before_colon && is_name(word);
            out.push_str(word);
        }
    }
    out
}

fn is_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|known| name.ends_with(known))
}

fn is_token(word: &str) -> bool {
    if word.len() < SHORTEST {
        return false;
    }
    let begins = |(beginning, more): &(&str, usize)| {
        word.match_indices(beginning).any(|(at, _)| {
            // Within a longer word only behind a separator: `task-…` is no key.
            let is_begun =
                word[..at].chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric());
            is_begun && word.len() - at - beginning.len() >= *more
        })
    };
    if BEGINNINGS.iter().any(begins) {
        return true;
    }
    let runs = |is_in: fn(char) -> bool, long: usize| {
        word.split(|character| !is_in(character)).any(|run| {
            run.len() >= long
                && run.bytes().any(|byte| byte.is_ascii_digit())
                && run.bytes().any(|byte| byte.is_ascii_alphabetic())
        })
    };
    runs(|character| character.is_ascii_hexdigit(), LONG_HEX)
        || runs(|character| character.is_ascii_alphanumeric() || character == '+', LONG_BASE64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_and_words_are_not() {
        let hex = "0123456789abcdef".repeat(2);
        let base64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2w1";
        for secret in [
            "sk-abcdefghijklmnop1234",
            "sk-proj-abcdefghijklmnop1234",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "github_pat_11ABCDEFG0abcdefghijkl_mnop",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abc",
            hex.as_str(),
            base64,
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        ] {
            for text in [secret.to_owned(), format!("use {secret}, then go"), format!("KEY=\"{secret}\"")] {
                let masked = masked(&text);
                assert!(!masked.contains(secret) && masked.contains(MASK), "{text}: {masked}");
            }
        }
        for (text, wanted) in [
            ("password=hunter2 next", "password=[masked] next"),
            ("DB_PASSWORD: 'hunter2'", "DB_PASSWORD: '[masked]'"),
            ("{\"api_key\": \"short\"}", "{\"api_key\": \"[masked]\"}"),
            ("Authorization: Bearer abc123 x", "Authorization: Bearer [masked] x"),
            ("a -----BEGIN KEY-----\nabc\n-----END KEY----- b", "a [masked] b"),
            ("-----BEGIN KEY-----\nabc", "[masked]"),
        ] {
            assert_eq!(masked(text), wanted, "{text}");
        }
        for plain in [
            "the task-list of src/signals/self_report.rs is open",
            "commit 1fadf3c, 41 files; see docs/state.md",
            "rename passwords to keys",
            "https://example.org/a/b-c_d?x=1",
        ] {
            assert_eq!(masked(plain), plain);
        }
    }
}
