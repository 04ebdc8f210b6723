//! `headman config`.

use std::fs;

use crate::cli_support::Place;

#[test]
fn a_configuration_is_written_once_found_and_shown() {
    let place = Place::new();
    let path = place.path("home/.config/headman/config.toml");
    assert_eq!(place.run(&["config", "path"]).stdout, format!("{}\n", path.display()));
    assert_eq!(place.run(&["config", "path", "--json"]).json()["path"], path.to_str().unwrap());
    let shown = place.run(&["config", "show"]);
    assert!(shown.code == 0 && shown.stdout.contains("register = true"), "{}", shown.stdout);
    assert!(!path.exists());
    assert_eq!(place.run(&["config", "init"]).code, 0);
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("\n#[supervisor.gate]\n"));
    // What was written changes nothing, and is never written over.
    assert_eq!(place.run(&["config", "show"]).stdout, shown.stdout);
    fs::write(&path, "register = false\n[keys]\nreply = [\"r\", \"ctrl-r\"]\n").unwrap();
    let before = place.picture();
    let ran = place.run(&["config", "init", "--json"]);
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &"exists".into()));
    assert_eq!(place.picture(), before);
    assert!(place.run(&["config", "show"]).stdout.contains("register = false"));
    assert_eq!(place.run(&["config", "show", "--json"]).json()["keys"]["reply"][0], "r");
    // Also a link that leads nowhere is something.
    std::os::unix::fs::symlink("nowhere", place.path("link")).unwrap();
    assert_eq!(place.run(&["config", "init", "--config", "link"]).code, 1);
    // A named one need not be there to be written; to be shown it has to be right.
    assert_eq!(place.run(&["config", "init", "--config", "new/c.toml"]).code, 0);
    assert!(place.path("new/c.toml").exists());
    assert_eq!(place.run(&["config", "show", "--config", "absent"]).code, 2);
    fs::write(&path, "[supervisor]\nenabled = true\n").unwrap();
    let ran = place.run(&["config", "show"]);
    assert!(ran.code == 2 && ran.stderr.contains("missing field"), "{}", ran.stderr);
    assert_eq!(place.run(&["config", "path"]).code, 0);
    assert_eq!(place.run(&["config", "init", "--config", "home/.config/headman/config.toml/x"]).code, 4);
}
