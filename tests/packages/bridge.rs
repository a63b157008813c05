//! The main job by the command line: launch, look, stop, resume.

use crate::room::Room;
use serde_json::Value;

/// How `svc` is called in a room.
pub(crate) struct Caller<'a> {
    pub(crate) room: &'a Room,
    /// Program and options in front of the command.
    pub(crate) svc: Vec<&'a str>,
    pub(crate) env: Vec<(&'a str, &'a str)>,
}

impl Caller<'_> {
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> String {
        self.room.does(&[&self.svc[..], words].concat(), &self.env)
    }

    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let said = self.says(&[words, &["--json"]].concat());
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    /// Status and process of the only bridge.
    #[track_caller]
    pub(crate) fn bridge(&self) -> (String, Option<i64>) {
        let all = self.json(&["status"]);
        let rows = all["instances"].as_array().or_else(|| all.as_array());
        let rows = rows.unwrap_or_else(|| panic!("no list: {all}"));
        assert_eq!(rows.len(), 1, "{all}");
        (rows[0]["status"].as_str().unwrap().to_owned(), rows[0]["bridge_pid"].as_i64())
    }

    /// Launches a bridge, follows it through its life and leaves it stopped.
    #[track_caller]
    pub(crate) fn does_the_main_job(&self, project: &str) {
        self.says(&["start", project, "--trust", "--wait"]);
        let (status, first) = self.bridge();
        assert_eq!(status, "running");
        assert!(first.is_some(), "no process");
        let log = self.says(&["logs", project]);
        assert!(log.contains("Starting poll loop"), "{log}");
        self.says(&["stop", project]);
        assert_eq!(self.bridge(), ("stopped".to_owned(), None));
        self.says(&["resume", project]);
        let (status, second) = self.bridge();
        assert_eq!(status, "running");
        assert_ne!(second, first);
        self.says(&["stop", project]);
        assert_eq!(self.bridge(), ("stopped".to_owned(), None));
    }
}
