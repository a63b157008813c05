//! The 256 colours of terminals, for colours given by red, green and blue.

/// Steps of the colour cube.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The nearest colour of the table, from 16 to 255.
///
/// The first 16 are left out: each viewer has its own idea of them.
pub(super) fn nearest(rgb: [u8; 3]) -> u8 {
    let step = |value: u8| {
        let closest = (0u8..).zip(STEPS).min_by_key(|(_, step)| step.abs_diff(value));
        closest.unwrap_or_default()
    };
    let [red, green, blue] = rgb.map(step);
    let cube = 16 + 36 * red.0 + 6 * green.0 + blue.0;
    let average = rgb.iter().map(|value| u16::from(*value)).sum::<u16>() / 3;
    // 24 greys from 8 to 238 in steps of 10.
    let grey = u8::try_from((average.saturating_sub(3) / 10).min(23)).unwrap_or(23);
    let grey_value = 8 + 10 * grey;
    let distance = |other: [u8; 3]| -> u32 {
        let parts = rgb.iter().zip(other).map(|(one, other)| u32::from(one.abs_diff(other)).pow(2));
        parts.sum()
    };
    if distance([grey_value; 3]) < distance([red.1, green.1, blue.1]) { 232 + grey } else { cube }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_colour_of_the_table_is_taken() {
        for (rgb, expected) in [
            ([0, 0, 0], 16),
            ([255, 255, 255], 231),
            ([255, 0, 0], 196),
            ([95, 135, 175], 67),
            ([8, 8, 8], 232),
            ([238, 238, 238], 255),
            ([128, 128, 128], 244),
            ([1, 250, 3], 46),
        ] {
            assert_eq!(nearest(rgb), expected, "{rgb:?}");
        }
    }
}
