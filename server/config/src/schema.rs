//! What a configuration key is.
//! Its type, its constraint, its default, when a change applies.

/// One key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    /// Dotted path. `projects.<name>.…` stands for one key per project.
    pub key: &'static str,
    /// Type and constraint.
    pub kind: Kind,
    /// Value when nothing sets the key.
    pub preset: Preset,
    /// Whether null is a value of the key.
    pub nullable: bool,
    /// Whether a blank text means null, in the file and in the environment.
    pub blank_is_null: bool,
    /// Whether the value must never be shown.
    pub secret: bool,
    /// Which editor may change it.
    pub edit: Edit,
    /// When a change takes effect.
    pub apply: Apply,
    /// Whether the key asks for a protection: without enforcement it refuses to start.
    pub protects: bool,
    /// One line for people.
    pub about: &'static str,
}

/// Type and constraint of a key.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A switch.
    Bool,
    /// A whole number, both bounds included.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A finite number.
    Float(Range),
    /// A span of time in seconds; also written with a unit.
    Seconds {
        /// Whether only whole seconds are accepted.
        whole: bool,
        /// Bounds in seconds.
        range: Range,
    },
    /// One line of text.
    Text(TextRule),
    /// One of the given words.
    Choice {
        /// The words.
        words: &'static [&'static str],
        /// Whether case and outer blanks are ignored.
        fold: bool,
    },
    /// A path; `~` is expanded, relative means relative to the configuration file.
    Path,
    /// A program: a name to look up in `PATH`, or a path.
    Program,
    /// A path of a Unix socket, short enough for every system.
    SocketPath,
    /// A list of scalars.
    List(ItemRule),
    /// Names and texts, for an environment. File only.
    TextMap,
    /// Known names and switches, each with its default. File only.
    Switches(&'static [(&'static str, bool)]),
}

/// Bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lower bound.
    pub min: f64,
    /// Whether the lower bound itself is outside.
    pub is_open: bool,
    /// Upper bound, included; infinite when there is none.
    pub max: f64,
}

/// What a text must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRule {
    /// Anything printable.
    Any,
    /// Something one can bind to.
    Host,
    /// A URL path prefix.
    RootPath,
    /// A short name for the process title.
    InstanceName,
    /// A name shown in the remote client.
    SessionName,
    /// Name of an HTTP header.
    HeaderName,
    /// A lower-case SHA-256.
    Sha256Hex,
    /// A currency code; trimmed and upper-cased.
    Currency,
    /// Two times of day, such as `22:00-07:00`.
    QuietHours,
}

/// What the entries of a list must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemRule {
    /// Anything printable.
    Any,
    /// A directory; `~` is expanded.
    Path,
    /// An address or a range of addresses; host bits are allowed.
    Network,
    /// A browser origin; what is not one is kept and warned about.
    Origin,
    /// A host name or `*.suffix`.
    HostPattern,
    /// A host name or an address.
    HostName,
}

/// Value of a key that nothing sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Preset {
    /// There is none: the key must be set.
    Required,
    /// Computed from the environment and other keys.
    Derived,
    /// Known to be none.
    Null,
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(&'static str),
    /// A list.
    List(&'static [&'static str]),
    /// An empty map.
    EmptyMap,
    /// Every known switch with its state.
    Switches(&'static [(&'static str, bool)]),
}

/// Which in-app editor may change a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The basic one.
    Basic,
    /// The advanced one.
    Advanced,
    /// None: only the file.
    File,
}

/// When a changed value takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apply {
    /// At the next start of the service.
    Restart,
    /// At once.
    Live,
    /// For the next bridge that is started.
    NextSpawn,
    /// Whenever the MCP server is started.
    NextMcpStart,
}

/// The section whose children are named by the operator.
pub const PROJECTS: &str = "projects";

/// Prefix of the keys that exist once per project.
pub const PROJECT_PREFIX: &str = "projects.<name>.";

/// Sections whose keys protect: the doctor fails for a misspelt one.
///
/// See `configuration` §3.1.
pub const SECURITY_SECTIONS: [&str; 8] =
    ["auth", "tls", "config_write", "login_shepherd", "mcp", "clone", "observability", "projects"];

impl Leaf {
    pub(crate) const fn new(
        key: &'static str,
        kind: Kind,
        preset: Preset,
        edit: Edit,
        apply: Apply,
        about: &'static str,
    ) -> Self {
        Self {
            key,
            kind,
            preset,
            nullable: matches!(preset, Preset::Null),
            blank_is_null: false,
            secret: false,
            edit,
            apply,
            protects: false,
            // A doc comment begins with a blank.
            about: about.trim_ascii(),
        }
    }

    pub(crate) const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    pub(crate) const fn blank_is_null(mut self) -> Self {
        self.blank_is_null = true;
        self
    }

    pub(crate) const fn protects(mut self) -> Self {
        self.protects = true;
        self
    }

    /// Whether the key exists once per project.
    #[must_use]
    pub fn is_per_project(&self) -> bool {
        self.key.starts_with(PROJECT_PREFIX)
    }

    /// Last segment of the key.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// Environment variable of the key; maps and project keys have none.
    #[must_use]
    pub fn variable(&self) -> Option<String> {
        match self.kind {
            Kind::TextMap | Kind::Switches(_) => None,
            _ if self.is_per_project() => None,
            Kind::Bool
            | Kind::Int { .. }
            | Kind::Float(_)
            | Kind::Seconds { .. }
            | Kind::Text(_)
            | Kind::Choice { .. }
            | Kind::Path
            | Kind::Program
            | Kind::SocketPath
            | Kind::List(_) => Some(variable_of(self.key)),
        }
    }
}

/// `SVC_` name of a dotted path.
#[must_use]
pub fn variable_of(key: &str) -> String {
    format!("SVC_{}", key.replace('.', "_").to_ascii_uppercase())
}

impl Range {
    /// Everything greater than `min`.
    #[must_use]
    pub const fn above(min: f64) -> Self {
        Self { min, is_open: true, max: f64::INFINITY }
    }

    /// Everything from `min` on.
    #[must_use]
    pub const fn at_least(min: f64) -> Self {
        Self { min, is_open: false, max: f64::INFINITY }
    }

    /// The same, ending at `max`.
    #[must_use]
    pub const fn up_to(mut self, max: f64) -> Self {
        self.max = max;
        self
    }

    /// Whether `value` lies inside; never true for NaN.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        let is_above = if self.is_open { value > self.min } else { value >= self.min };
        is_above && value <= self.max
    }

    /// The bounds in words, after "must be".
    #[must_use]
    pub fn in_words(self) -> String {
        let Self { min, is_open, max } = self;
        match (is_open, max.is_finite()) {
            (true, false) => format!("greater than {min}"),
            (false, false) => format!("at least {min}"),
            (true, true) => format!("greater than {min} and at most {max}"),
            (false, true) => format!("between {min} and {max}"),
        }
    }
}
