//! What a viewer draws: rows of text runs, cursor and modes.
//!
//! Nothing in here is an escape sequence. Rows were redacted before they left the keeper.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Fewest columns of a terminal.
pub const MIN_COLS: u16 = 20;
/// Most columns of a terminal.
pub const MAX_COLS: u16 = 400;
/// Fewest rows of a terminal.
pub const MIN_ROWS: u16 = 5;
/// Most rows of a terminal.
pub const MAX_ROWS: u16 = 200;

/// Columns and rows of a terminal, always within the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    cols: u16,
    rows: u16,
}

impl Size {
    /// The nearest size that is allowed.
    #[must_use]
    pub fn clamped(cols: u16, rows: u16) -> Self {
        Self { cols: cols.clamp(MIN_COLS, MAX_COLS), rows: rows.clamp(MIN_ROWS, MAX_ROWS) }
    }

    /// Columns.
    #[must_use]
    pub fn cols(self) -> u16 {
        self.cols
    }

    /// Rows.
    #[must_use]
    pub fn rows(self) -> u16 {
        self.rows
    }
}

/// Colour of text or of what is behind it. On the wire: null, 0–255 or `"#rrggbb"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Colour {
    /// The viewer's own colour.
    #[default]
    Default,
    /// A colour of the 256-colour table.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

impl Serialize for Colour {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Default => to.serialize_none(),
            Self::Indexed(index) => to.serialize_u8(*index),
            Self::Rgb(red, green, blue) => {
                to.collect_str(&format_args!("#{red:02x}{green:02x}{blue:02x}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Colour {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Indexed(u8),
            Hex(String),
        }
        match Option::<Wire>::deserialize(from)? {
            None => Ok(Self::Default),
            Some(Wire::Indexed(index)) => Ok(Self::Indexed(index)),
            Some(Wire::Hex(text)) => {
                let digits = text.strip_prefix('#').unwrap_or_default();
                match hex::decode(digits).as_deref() {
                    Ok(&[red, green, blue]) => Ok(Self::Rgb(red, green, blue)),
                    Ok(_) | Err(_) => Err(serde::de::Error::custom("not a colour")),
                }
            }
        }
    }
}

/// Attributes of a run, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Attrs(pub u8);

impl Attrs {
    /// Bold.
    pub const BOLD: Self = Self(1);
    /// Faint.
    pub const DIM: Self = Self(2);
    /// Italic.
    pub const ITALIC: Self = Self(4);
    /// Any kind of underline.
    pub const UNDERLINE: Self = Self(8);
    /// Colours exchanged.
    pub const INVERSE: Self = Self(16);
    /// Struck out.
    pub const STRIKE: Self = Self(32);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other`, if `on`.
    #[must_use]
    pub fn with(self, other: Self, on: bool) -> Self {
        if on { Self(self.0 | other.0) } else { self }
    }
}

/// Neighbouring cells that look alike. On the wire: `[text, fg, bg, attrs, cells]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(from = "RunWire", into = "RunWire")]
pub struct Run {
    /// Text without control characters.
    pub text: String,
    /// Colour of the text.
    pub fg: Colour,
    /// Colour behind the text.
    pub bg: Colour,
    /// Attributes.
    pub attrs: Attrs,
    /// Cells that the text takes: wide characters take two, combining marks none.
    pub cells: u16,
}

type RunWire = (String, Colour, Colour, Attrs, u16);

impl From<RunWire> for Run {
    fn from((text, fg, bg, attrs, cells): RunWire) -> Self {
        Self { text, fg, bg, attrs, cells }
    }
}

impl From<Run> for RunWire {
    fn from(run: Run) -> Self {
        (run.text, run.fg, run.bg, run.attrs, run.cells)
    }
}

/// One row of the grid. Blank cells at its end are left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Row {
    /// From left to right.
    #[serde(rename = "r", default)]
    pub runs: Vec<Run>,
    /// Whether the line goes on in the next row because it was too long for this row.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapped: bool,
}

impl Row {
    /// The text of the row, without blanks at its end.
    #[must_use]
    pub fn text(&self) -> String {
        self.runs.iter().map(|run| run.text.as_str()).collect()
    }
}

/// Shape of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CursorShape {
    /// The whole cell.
    #[default]
    Block,
    /// A line below the text.
    Underline,
    /// A line before the text.
    Bar,
}

/// Where the cursor is, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cursor {
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
    /// Whether it is shown.
    pub visible: bool,
    /// Its shape.
    #[serde(default)]
    pub shape: CursorShape,
}

/// Modes that decide which bytes a key sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Modes {
    /// The alternate screen is shown: a full-screen program runs.
    pub alt: bool,
    /// Arrow keys send application sequences.
    pub app_cursor: bool,
    /// Pasted text is put between marks.
    pub bracketed_paste: bool,
    /// The program asked for mouse events.
    pub mouse: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_wire_form_that_viewers_know() {
        let run =
            |fg, attrs| Run { text: "日".to_owned(), fg, bg: Colour::Default, attrs, cells: 2 };
        let row = Row {
            runs: vec![
                run(Colour::Default, Attrs::default()),
                run(Colour::Indexed(7), Attrs::BOLD.with(Attrs::STRIKE, true)),
                run(Colour::Rgb(1, 2, 255), Attrs::INVERSE),
            ],
            wrapped: true,
        };
        let wire = serde_json::to_string(&row).unwrap();
        assert_eq!(
            wire,
            "{\"r\":[[\"日\",null,null,0,2],[\"日\",7,null,33,2],[\"日\",\"#0102ff\",null,16,2]],\
             \"w\":true}"
        );
        assert_eq!(serde_json::from_str::<Row>(&wire).unwrap(), row);
        assert_eq!(serde_json::from_str::<Row>("{\"r\":[]}").unwrap(), Row::default());
    }

    #[test]
    fn a_colour_that_is_none_is_refused() {
        for wrong in ["256", "-1", "\"#12345\"", "\"red\"", "\"123456\"", "true"] {
            assert!(serde_json::from_str::<Colour>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_size_leaves_the_limits() {
        for (cols, rows) in [(0, 0), (u16::MAX, u16::MAX), (1, 300), (500, 1)] {
            let size = Size::clamped(cols, rows);
            assert!((MIN_COLS..=MAX_COLS).contains(&size.cols()));
            assert!((MIN_ROWS..=MAX_ROWS).contains(&size.rows()));
        }
    }
}
