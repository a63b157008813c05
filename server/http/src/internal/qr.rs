//! The link for the remote client as a QR code (`http-api` §3.3).

use crate::error::Refusal;
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};

/// Edge of one module, pixels.
const MODULE: u32 = 4;

/// An SVG of `link` as a QR code with error correction M, black on white.
///
/// It has the quiet zone of four modules that readers need (ISO/IEC 18004 §6.3.8).
///
/// # Errors
/// The link is longer than a code can hold: about 2.3 kB at this level.
pub(crate) fn svg(link: &str) -> Result<String, Refusal> {
    let code = QrCode::with_error_correction_level(link, EcLevel::M)
        .map_err(|error| Refusal::internal(&format!("a link does not fit a QR code: {error}")))?;
    Ok(code.render::<svg::Color<'_>>().module_dimensions(MODULE, MODULE).quiet_zone(true).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules of the picture, row by row, dark ones true.
    fn modules(picture: &str) -> Vec<Vec<bool>> {
        let attribute = |name: &str| {
            let rest = picture.split(&format!(" {name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let edge: usize = attribute("width").parse().unwrap();
        let side = edge / MODULE as usize;
        let mut dark = vec![vec![false; side]; side];
        for rectangle in attribute("d").split('M').skip(1) {
            let numbers: Vec<usize> = rectangle
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|number| number.parse().ok())
                .collect();
            let [left, top, width, height, ..] = numbers[..] else { panic!("{rectangle}") };
            for row in &mut dark[top / 4..(top + height) / 4] {
                row[left / 4..(left + width) / 4].fill(true);
            }
        }
        dark
    }

    #[test]
    fn the_picture_is_the_code_of_the_link_with_four_quiet_modules_around() {
        let link = "https://claude.ai/code/session_011ABCdefGHIjklMNOpqrSTU?from=cli";
        let dark = modules(&svg(link).unwrap());
        let code = QrCode::with_error_correction_level(link, EcLevel::M).unwrap();
        assert_eq!(dark.len(), code.width() + 8);
        for (y, row) in dark.iter().enumerate() {
            for (x, is_dark) in row.iter().enumerate() {
                let inside =
                    (4..code.width() + 4).contains(&x) && (4..code.width() + 4).contains(&y);
                let wanted = inside && code[(x - 4, y - 4)] == qrcode::Color::Dark;
                assert_eq!(*is_dark, wanted, "{x} {y}");
            }
        }
    }

    #[test]
    fn a_link_that_no_code_can_hold_is_a_defect_and_no_panic() {
        assert_eq!(svg(&"x".repeat(5000)).unwrap_err().status(), 500);
    }
}
