//! How a button looks.

/// Weight of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ButtonStyle {
    /// The one main action of a card, dialog or header.
    Primary,
    /// The usual action of a row.
    Soft,
    /// Beside the main action.
    #[default]
    Secondary,
    /// Quiet.
    Ghost,
    /// Only inside a confirmation.
    Danger,
}

impl ButtonStyle {
    /// Classes.
    pub fn class(self) -> &'static str {
        match self {
            Self::Primary => "btn btn-primary",
            Self::Soft => "btn btn-soft",
            Self::Secondary => "btn btn-secondary",
            Self::Ghost => "btn btn-ghost",
            Self::Danger => "btn btn-danger",
        }
    }
}
