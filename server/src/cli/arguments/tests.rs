//! The tree as a whole, and how its arguments are read.

use super::*;
use clap::CommandFactory;
use proptest::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

fn parsed(words: &str) -> Arguments {
    Arguments::try_parse_from(words.split(' ')).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The words are bytes of a command line: nothing says that they are text.
    #[test]
    fn h144_any_command_line_is_read_or_refused_with_a_reason(
        named in proptest::option::of(0_usize..60),
        words in proptest::collection::vec(
            prop_oneof![
                "(-{0,3}[a-z]{1,12}(=[ -~]{0,8})?|[ -~]{0,12})".prop_map(String::into_bytes),
                proptest::collection::vec(1_u8..=255, 0..12),
            ],
            0..8,
        ),
    ) {
        let tree = Arguments::command();
        let command = named.and_then(|at| tree.get_subcommands().nth(at)).map(|one| one.get_name());
        let words = words.into_iter().map(OsString::from_vec);
        let line = [Some("svc"), command].into_iter().flatten().map(OsString::from).chain(words);
        if let Err(refused) = Arguments::try_parse_from(line) {
            prop_assert!(!refused.to_string().is_empty());
        }
    }
}

#[test]
fn the_tree_is_consistent_and_every_command_has_an_example() {
    Arguments::command().debug_assert();
    for command in Arguments::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains(&format!("svc {}", command.get_name())), "{help}");
    }
}

#[test]
fn the_config_option_stands_before_or_after_the_command() {
    for words in ["svc -c x.yml status", "svc status -c x.yml", "svc status --config=x.yml --json"]
    {
        assert_eq!(parsed(words).config, Some(PathBuf::from("x.yml")), "{words}");
    }
    assert!(parsed("svc -c x.yml").command.is_none());
    assert_eq!(parsed("svc config path -c x.yml").config, Some(PathBuf::from("x.yml")));
}

#[test]
fn waiting_takes_seconds_or_none() {
    let wait = |words: &str| match parsed(words).command {
        Some(Command::Start(start)) => (start.project, start.wait),
        other => panic!("{other:?}"),
    };
    assert_eq!(wait("svc start api"), ("api".into(), None));
    assert_eq!(wait("svc start api --wait"), ("api".into(), Some(None)));
    assert_eq!(wait("svc start api --wait 5 --json"), ("api".into(), Some(Some(5))));
    assert_eq!(wait("svc start --wait=5 api"), ("api".into(), Some(Some(5))));
}

#[test]
fn a_name_that_begins_with_a_dash_reaches_the_check_that_explains_it() {
    match parsed("svc start api --name --help").command {
        Some(Command::Start(start)) => assert_eq!(start.name.as_deref(), Some("--help")),
        other => panic!("{other:?}"),
    }
}
