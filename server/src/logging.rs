//! The service log: one line per entry on standard error, redacted and escaped.
//!
//! Text or JSON for a server; for a command only warnings, in the form of its other remarks.

use crate::error_chain::error_chain;
use serde_json::{Map, Value};
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use svc_app::{OLDER_LOG, SERVICE_LOG};
use svc_config::{LogFormat, LogLevel};
use svc_domain::log_escape::{escape, escape_json};
use svc_domain::redact::{MASK, redact_text};
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// Shape of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `<time> <LEVEL> <logger>: <message>`.
    Text,
    /// One JSON object per line.
    Json,
    /// `svc: warning: <message>`, for commands that end by themselves.
    Remark,
}

impl From<LogFormat> for Shape {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

/// The shape of the log of this process.
static SHAPE: OnceLock<Shape> = OnceLock::new();

/// Size from which the kept log is rotated, bytes.
const ROTATE_AT: u64 = 1024 * 1024;

/// Where the service keeps the end of its log, for a support bundle.
static KEPT: OnceLock<Mutex<Kept>> = OnceLock::new();

struct Kept {
    state_dir: PathBuf,
    file: File,
    size: u64,
}

/// Keeps the log of this process in the state directory from now on.
///
/// What cannot be written there is on standard error all the same.
pub(crate) fn keep_in(state_dir: &Path) {
    match Kept::open(state_dir) {
        Ok(kept) => {
            let _ = KEPT.set(Mutex::new(kept)); // a test may start two services
        }
        Err(error) => tracing::warn!(error = %error, "the log is not kept in the state directory"),
    }
}

impl Kept {
    fn open(state_dir: &Path) -> std::io::Result<Self> {
        let path = state_dir.join(SERVICE_LOG);
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { state_dir: state_dir.to_owned(), file, size })
    }

    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        // After a failure the old file is written on, and the next line tries again.
        if self.size >= ROTATE_AT
            && let Ok(next) = self.rotated()
        {
            *self = next;
        }
        self.file.write_all(line)?;
        self.size = self.size.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    fn rotated(&self) -> std::io::Result<Self> {
        let [now, older] = [SERVICE_LOG, OLDER_LOG].map(|name| self.state_dir.join(name));
        match std::fs::rename(now, older) {
            // Somebody deleted it, or an earlier attempt could rename it but not create the next.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        Self::open(&self.state_dir)
    }
}

/// A remark as a line of the log, where the log is for programs.
///
/// They read standard error line by line, and a remark between two entries would be no entry.
pub(crate) fn as_entry(level: &'static str, text: &str) -> Option<String> {
    if SHAPE.get() != Some(&Shape::Json) {
        return None;
    }
    let fields = Fields { message: text.to_owned(), others: Vec::new() };
    Some(Entry { at: now(), level, logger: "svc", fields }.line(Shape::Json))
}

/// Starts the log of this process. A second call changes nothing.
pub(crate) fn start(shape: Shape, level: LogLevel) {
    let _ = SHAPE.set(shape);
    let own = match level {
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
    };
    let wanted = filter_fn(move |metadata| is_wanted(metadata, own));
    let log = Log { shape }.with_filter(wanted);
    // Only fails when a log was started before, as tests of one process may do.
    let _ = tracing_subscriber::registry().with(log).try_init();
}

/// Our own crates at the configured level; of others only what is wrong.
fn is_wanted(metadata: &Metadata<'_>, own: LevelFilter) -> bool {
    if metadata.target().starts_with("rmcp") {
        // It tells of what clients send, word by word; they get an answer instead.
        return false;
    }
    let is_own = metadata.target() == "svc" || metadata.target().starts_with("svc_");
    let most = if is_own { own } else { own.min(LevelFilter::WARN) };
    *metadata.level() <= most
}

struct Log {
    shape: Shape,
}

/// Fields of an event or a span, in order, raw.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
        } else {
            self.others.push((field.name(), value));
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::String(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::String(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, Value::String(error_chain(value)));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.others.extend(outer.others.iter().cloned());
            }
        }
        let metadata = event.metadata();
        let entry =
            Entry { at: now(), level: level(*metadata.level()), logger: metadata.target(), fields };
        let line = entry.line(self.shape);
        // With standard error gone there is nowhere left to say so.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
        if let Some(kept) = KEPT.get() {
            let _ = kept.lock().unwrap_or_else(PoisonError::into_inner).write(line.as_bytes());
        }
    }
}

/// One entry of the log.
struct Entry<'a> {
    at: Timestamp,
    level: &'static str,
    logger: &'a str,
    fields: Fields,
}

impl Entry<'_> {
    /// The finished line with its end.
    fn line(&self, shape: Shape) -> String {
        match shape {
            Shape::Text => {
                let text = self.message_and_fields();
                format!("{} {} {}: {text}\n", self.at, self.level, self.logger)
            }
            Shape::Remark => {
                format!("svc: {}: {}\n", self.level.to_lowercase(), self.message_and_fields())
            }
            Shape::Json => {
                let text = Value::Object(self.object()).to_string();
                format!("{}\n", escape_json(&text))
            }
        }
    }

    fn message_and_fields(&self) -> String {
        let mut text = self.fields.message.clone();
        for (name, value) in &self.fields.others {
            let value = shown(name, value);
            // Writing to a string cannot fail.
            let _ = match value {
                Value::String(text_value) => write!(text, " {name}={text_value:?}"),
                other => write!(text, " {name}={other}"),
            };
        }
        escape(&redact_text(&text)).into_owned()
    }

    fn object(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("time".to_owned(), self.at.to_string().into());
        object.insert("level".to_owned(), self.level.into());
        object.insert("logger".to_owned(), self.logger.into());
        object.insert("message".to_owned(), redact_text(&self.fields.message).into());
        for (name, value) in &self.fields.others {
            let value = match shown(name, value) {
                Value::String(text) => redacted(name, &text).into(),
                other => other,
            };
            // The innermost scope comes first and wins.
            object.entry((*name).to_owned()).or_insert(value);
        }
        object
    }
}

/// A value for display. The id of an instance is shortened, as in tables.
/// The redactor would take the whole id for a session id and mask all of it.
fn shown(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if name == "bridge.id" => match text.parse::<InstanceId>() {
            Ok(id) => id.short().into(),
            Err(_) => value.clone(),
        },
        other => other.clone(),
    }
}

/// A text of a field; the name decides, too, whether it is a secret.
fn redacted(name: &str, text: &str) -> String {
    let named = redact_text(&format!("{name}={text}"));
    if named.ends_with(&format!("={MASK}")) { MASK.to_owned() } else { redact_text(text) }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        _ => "DEBUG",
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(message: &str, others: Vec<(&'static str, Value)>) -> Entry<'static> {
        Entry {
            at: Timestamp::from_millis(1_795_254_455_007),
            level: "INFO",
            logger: "svc_app",
            fields: Fields { message: message.to_owned(), others },
        }
    }

    #[test]
    fn a_text_line_has_time_level_logger_and_message() {
        let line = entry("stopped", vec![("duration_ms", 5.into())]).line(Shape::Text);
        assert_eq!(line, "2026-11-21T09:47:35.007Z INFO svc_app: stopped duration_ms=5\n");
    }

    #[test]
    fn h67_a_json_line_is_one_object_whatever_the_message_holds() {
        let hostile = "x\n2026-01-01 ERROR fake\u{1b}]52;c;eA==\u{7}\u{202e}";
        let line = entry(hostile, vec![("project.name", "a\"b".into())]).line(Shape::Json);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.chars().any(|c| c.is_control() && c != '\n'), "{line:?}");
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["level"], "INFO");
        assert_eq!(parsed["time"], "2026-11-21T09:47:35.007Z");
        assert_eq!(parsed["project.name"], "a\"b");
        assert!(parsed["message"].as_str().unwrap().contains("ERROR fake"));
    }

    #[test]
    fn h67_a_forged_line_stays_inside_its_own() {
        let line = entry("a\r\n2026 ERROR fake", vec![]).line(Shape::Text);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(
            line.contains("a\\x0d\\x0a2026 ERROR fake") || line.contains("a\\x0a2026"),
            "{line}"
        );
    }

    #[test]
    fn secrets_are_masked_in_messages_and_by_the_name_of_a_field() {
        for shape in [Shape::Text, Shape::Json, Shape::Remark] {
            let fields = vec![("token", Value::from("correcthorsebattery"))];
            let line = entry("got ghp_0123456789abcdefghij", fields).line(shape);
            assert!(!line.contains("0123456789") && !line.contains("correcthorse"), "{line}");
        }
    }

    #[test]
    fn an_instance_is_named_by_the_beginning_of_its_id() {
        let id = Value::from("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0");
        for shape in [Shape::Text, Shape::Json] {
            let line = entry("stopped", vec![("bridge.id", id.clone())]).line(shape);
            assert!(line.contains("0f1e2d3c") && !line.contains("4b5a"), "{line}");
        }
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_kept_log_that_was_deleted_is_begun_anew() {
        let root = tempfile::tempdir().unwrap();
        let log = root.path().join(SERVICE_LOG);
        let mut kept = Kept::open(root.path()).unwrap();
        std::fs::remove_file(&log).unwrap();
        kept.size = ROTATE_AT;
        kept.write(b"one\n").unwrap();
        kept.write(b"two\n").unwrap();
        assert_eq!(read(&log), "one\ntwo\n");
    }

    #[test]
    fn a_kept_log_is_written_on_until_its_rotation_succeeds() {
        let root = tempfile::tempdir().unwrap();
        let [log, older] = [SERVICE_LOG, OLDER_LOG].map(|name| root.path().join(name));
        let mut kept = Kept::open(root.path()).unwrap();
        std::fs::create_dir(&older).unwrap();
        kept.size = ROTATE_AT;
        kept.write(b"one\n").unwrap();
        assert_eq!(read(&log), "one\n");
        std::fs::remove_dir(&older).unwrap();
        kept.write(b"two\n").unwrap();
        assert_eq!([older, log].map(|path| read(&path)), ["one\n", "two\n"]);
    }

    #[test]
    fn a_kept_log_is_written_on_until_a_new_file_can_be_created() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("state");
        std::fs::create_dir(&dir).unwrap();
        let [log, aside] = [dir.join(SERVICE_LOG), root.path().join("aside")];
        let mut kept = Kept::open(&dir).unwrap();
        std::fs::rename(&log, &aside).unwrap();
        std::fs::remove_dir(&dir).unwrap();
        kept.size = ROTATE_AT;
        kept.write(b"one\n").unwrap();
        std::fs::create_dir(&dir).unwrap();
        kept.write(b"two\n").unwrap();
        assert_eq!([aside, log].map(|path| read(&path)), ["one\n", "two\n"]);
    }

    #[test]
    fn a_remark_of_a_command_has_the_prefix_of_its_other_remarks() {
        let entry = Entry { level: "WARNING", ..entry("no watch", vec![]) };
        assert_eq!(entry.line(Shape::Remark), "svc: warning: no watch\n");
    }
}
