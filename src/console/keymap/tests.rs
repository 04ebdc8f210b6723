use std::collections::HashSet;

use super::*;

fn configured(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    pairs
        .iter()
        .map(|(name, keys)| ((*name).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect()))
        .collect()
}

fn default() -> Keymap {
    Keymap::new(&BTreeMap::new()).unwrap()
}

fn event(text: &str) -> KeyEvent {
    let key = Key::parse(text).unwrap();
    KeyEvent::new(key.code, key.modifiers)
}

fn press(map: &Keymap, context: Context, text: &str) -> Pressed {
    map.press(context, &mut Sequence::default(), event(text))
}

fn errors(pairs: &[(&str, &[&str])]) -> Vec<String> {
    Keymap::new(&configured(pairs)).unwrap_err().iter().map(KeymapError::to_string).collect()
}

#[test]
fn the_table_has_no_conflicts_and_says_everything_once() {
    default();
    let names: HashSet<_> = ACTIONS.iter().map(|action| action.name).collect();
    let intents: HashSet<_> = ACTIONS.iter().map(|action| action.intent).collect();
    assert_eq!((names.len(), intents.len()), (ACTIONS.len(), ACTIONS.len()));
    let help = default().help(None);
    assert_eq!(help.iter().map(|(_, lines)| lines.len()).sum::<usize>(), ACTIONS.len());
    for action in ACTIONS {
        assert!(!action.help.is_empty() && !action.keys.is_empty(), "{}", action.name);
        for key in action.keys {
            let keys = parse_sequence(key, action).unwrap();
            assert_eq!(show(&keys), *key, "keys are shown as they are written");
        }
    }
}

#[test]
fn every_key_of_the_table_asks_for_its_intent_where_it_should() {
    let map = default();
    for action in ACTIONS {
        for context in Context::ALL {
            for keys in action.keys {
                let mut sequence = Sequence::default();
                let last = keys.split(' ').map(|key| map.press(context, &mut sequence, event(key))).last();
                let meant = last == Some(Pressed::Intent(action.intent));
                assert_eq!(meant, context.is_in(action.scope), "{keys} in {context:?}");
            }
        }
    }
}

#[test]
fn no_character_is_a_key_in_a_text_field() {
    let map = default();
    for context in [Context::Composer, Context::Filter] {
        for character in ' '..='~' {
            let typed = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
            let pressed = map.press(context, &mut Sequence::default(), typed);
            assert_eq!(pressed, Pressed::Unbound, "{character}");
        }
    }
    assert_eq!(press(&map, Context::Confirm, "n"), Pressed::Intent(Intent::No));
    assert_eq!(press(&map, Context::Confirm, "q"), Pressed::Unbound);
    assert_eq!(press(&map, Context::Composer, "shift-enter"), Pressed::Intent(Intent::Newline));
}

#[test]
fn a_sequence_waits_for_its_end_and_lets_go_of_a_wrong_one() {
    let map = default();
    let mut sequence = Sequence::default();
    let mut keys = |context, text| map.press(context, &mut sequence, event(text));
    assert_eq!(keys(Context::Roster, "g"), Pressed::Pending);
    assert_eq!(keys(Context::Roster, "g"), Pressed::Intent(Intent::First));
    assert_eq!(keys(Context::Roster, "g"), Pressed::Pending);
    assert_eq!(keys(Context::Roster, "j"), Pressed::Intent(Intent::Down));
    assert_eq!(keys(Context::Roster, "g"), Pressed::Pending);
    assert_eq!(keys(Context::Detail, "g"), Pressed::Pending, "another context starts anew");
    assert_eq!(sequence.shown().as_deref(), Some("g"));
    let released = KeyEvent { kind: KeyEventKind::Release, ..event("j") };
    assert_eq!(map.press(Context::Roster, &mut sequence, released), Pressed::Unbound);
}

#[test]
fn terminals_may_report_shift_or_not() {
    let map = default();
    for (code, modifiers) in [
        (KeyCode::Char('G'), KeyModifiers::NONE),
        (KeyCode::Char('G'), KeyModifiers::SHIFT),
        (KeyCode::Char('g'), KeyModifiers::SHIFT),
    ] {
        let pressed = map.press(Context::Help, &mut Sequence::default(), KeyEvent::new(code, modifiers));
        assert_eq!(pressed, Pressed::Intent(Intent::Last));
    }
    for (code, modifiers) in [(KeyCode::BackTab, KeyModifiers::SHIFT), (KeyCode::Tab, KeyModifiers::SHIFT)] {
        let pressed = map.press(Context::Help, &mut Sequence::default(), KeyEvent::new(code, modifiers));
        assert_eq!(pressed, Pressed::Intent(Intent::PreviousPane));
    }
    let question = KeyEvent::new(KeyCode::Char('?'), KeyModifiers::SHIFT);
    assert_eq!(map.press(Context::Roster, &mut Sequence::default(), question), Pressed::Intent(Intent::Help));
}

#[test]
fn configured_keys_replace_the_default_ones_everywhere() {
    let map =
        Keymap::new(&configured(&[("down", &["ctrl-n", "ctrl-x"]), ("quit", &[]), ("first", &[", g"])]))
            .unwrap();
    assert_eq!(press(&map, Context::Roster, "ctrl-x"), Pressed::Intent(Intent::Down));
    assert_eq!(press(&map, Context::Roster, "j"), Pressed::Unbound);
    assert_eq!(press(&map, Context::Roster, "q"), Pressed::Unbound);
    assert_eq!(press(&map, Context::Roster, ","), Pressed::Pending);
    assert_eq!(map.keys_of(Intent::Down), ["ctrl-n", "ctrl-x"]);
    assert!(!map.footer(Context::Roster, |_| true).iter().any(|(_, label)| *label == "quit"));
    let lines: Vec<_> = map.help(None).into_iter().flat_map(|(_, lines)| lines).collect();
    assert!(lines.iter().any(|line| line.name == "quit" && line.keys.is_empty()));
    assert!(lines.iter().any(|line| line.name == "first" && line.keys == [", g"]));
}

#[test]
fn mistakes_name_the_key_and_what_to_do() {
    let unknown = errors(&[("replly", &["x"])]);
    assert!(unknown[0].starts_with("keys.replly: no such action; the actions are send,"), "{unknown:?}");
    let cases: &[(&str, &str, &str)] = &[
        ("down", "dwn", "keys.down: `dwn`: no such key; write a character, f1 to f12, or one of enter,"),
        ("down", "", "keys.down: ``: no key; write one"),
        ("down", "shift-j", "write the character itself instead, as in `J`"),
        ("down", "ctrl-i", "terminals send it as `tab`"),
        ("down", "ctrl-J", "write it in lower case, as in `ctrl-j`"),
        ("down", "ctrl-ctrl-x", "`ctrl-` stands twice"),
        ("down", "f13", "no such key"),
        ("down", "f01", "no such key"),
        ("down", "\u{1b}", "keys.down: `\\u{1b}`: no such key"),
        ("send", "x", "keys.send: `x`: it works in a text field"),
        ("back", "ctrl-x ctrl-y", "it works in a text field"),
        ("interrupt", "ctrl-g", "keys.interrupt: it keeps its key"),
    ];
    for (name, key, expected) in cases {
        let errors = errors(&[(name, &[key])]);
        assert!(errors.len() == 1 && errors[0].contains(expected), "{errors:?}");
    }
    assert_eq!(errors(&[("down", &["zz", "yy"]), ("nope", &[])]).len(), 3);
}

#[test]
fn conflicts_are_found_within_a_context_only() {
    let same = errors(&[("down", &["c"])]);
    assert_eq!(
        same,
        ["keys.chief: `c` collides with `c` of `down` (Outside text fields); give one of them another key"]
    );
    let begins = errors(&[("down", &["g"])]);
    assert!(begins[0].contains("`g g` collides with `g` of `down`"), "{begins:?}");
    let inherited = errors(&[("waiting-only", &["q"])]);
    assert!(inherited[0].contains("`q` of `waiting-only` (Leads)"), "{inherited:?}");
    assert!(Keymap::new(&configured(&[("yes", &["q"])])).is_ok(), "a question has only its own keys");
    assert!(errors(&[("yes", &["ctrl-z"])])[0].contains("(Question)"));
}

#[test]
fn the_footer_is_made_from_the_table() {
    let footer = default().footer(Context::Composer, |_| true);
    let expected = [
        ("enter", "send"),
        ("ctrl-j", "new line"),
        ("ctrl-g", "editor"),
        ("alt-l", "lessons"),
        ("esc", "back"),
        ("pagedown", "read on"),
    ];
    assert_eq!(footer, expected.map(|(key, label)| (key.to_owned(), label)));
    let roster = default().footer(Context::Roster, |_| true);
    assert_eq!(roster[0], ("n".to_owned(), "next ask"));
    // Keys that belong together share a label.
    let transcript = default().footer(Context::Transcript, |_| true);
    assert!(transcript.contains(&("[ ]".to_owned(), "turns")), "{transcript:?}");
    assert!(transcript.contains(&("{ }".to_owned(), "errors")), "{transcript:?}");
}

#[test]
fn the_help_begins_with_the_screen_it_is_asked_for_on() {
    let all = default().help(None);
    for here in Context::ALL {
        let help = default().help(Some(here));
        let own: Vec<_> = ACTIONS.iter().filter(|it| it.scope.contains(&here)).map(|it| it.name).collect();
        // A screen without keys of its own begins with those of everywhere.
        if !own.is_empty() {
            let first: Vec<_> = help[0].1.iter().map(|line| line.name).collect();
            assert_eq!((help[0].0, first), (here, own));
        }
        let count =
            |help: &[(Context, Vec<HelpLine>)]| help.iter().map(|(_, lines)| lines.len()).sum::<usize>();
        assert_eq!(count(&help), count(&all), "{here:?}: every action once");
    }
}
