//! All targets by name. A target takes any bytes and panics on a broken invariant.

use crate::{files, headers, logs, sessions, texts};

/// Name and body.
pub(crate) const ALL: &[(&str, fn(&[u8]))] = &[
    ("agent_list", texts::agent_list),
    ("agent_log", logs::agent_log),
    ("agent_words", texts::agent_words),
    ("archive", files::archive),
    ("clone", texts::clone),
    ("config", texts::config),
    ("exit_cause", logs::exit_cause),
    ("framing", headers::framing),
    ("headers", headers::headers),
    ("ids", texts::ids),
    ("job_files", files::job_files),
    ("json_edit", texts::json_edit),
    ("keeper", sessions::keeper),
    ("launch_file", files::launch_file),
    ("mcp_lines", sessions::mcp_lines),
    ("next_path", headers::next_path),
    ("origin", headers::origin),
    ("page_frames", sessions::page_frames),
    ("pointer", files::pointer),
    ("redact", logs::redact),
    ("registry", files::registry),
    ("state_json", texts::state_json),
    ("tail_lines", logs::tail_lines),
    ("terminal", logs::terminal),
    ("transcript", sessions::transcript),
    ("trust", files::trust),
    ("ui_prefs", texts::ui_prefs),
];
