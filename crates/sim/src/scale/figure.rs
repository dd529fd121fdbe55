//! Line charts in SVG: panels side by side over one legend.
//!
//! Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart; besides, every style has
//! a marker and a dash of its own. The same figure gives the same text, on every machine: coordinates are rounded to a tenth
//! of a point.

mod axis;

use std::fmt::Write as _;

pub use axis::{Axis, Scale};

/// Of a panel with its axes, in points.
const PANEL_WIDTH: f64 = 460.0;
const PANEL_HEIGHT: f64 = 330.0;
/// Around the plot: room for the labels of the axes.
const LEFT: f64 = 74.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 52.0;
/// Of the figure's title.
const TITLE_HEIGHT: f64 = 44.0;
/// Of a line of the legend, and of the note.
const LINE_HEIGHT: f64 = 20.0;
/// Of the line and marker before a name in the legend.
const SAMPLE_WIDTH: f64 = 36.0;
/// Of a letter of the legend, about.
const LETTER_WIDTH: f64 = 6.0;

/// A line of more points has no markers: they would hide it.
const MARKERS_MAX: usize = 40;

pub(super) const COLORS: [&str; 7] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
const DASHES: [&str; 4] = ["", "7 4", "2 3", "9 3 2 3"];

/// How a series is drawn. Series that belong together may share a colour or a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// The number of the colour; there are seven.
    pub color: usize,
    /// The number of the marker and of the dash; there are four.
    pub shape: usize,
}

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The name in the legend; series of one name in several panels should have one style.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Points, ascending in x. Those that the axes cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// One plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// The axis below.
    pub x: Axis,
    /// The axis to the left.
    pub y: Axis,
    /// The lines, the first at the back.
    pub series: Vec<Series>,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Above all panels.
    pub title: String,
    /// From left to right.
    pub panels: Vec<Panel>,
    /// Below the legend: what was run. Long ones are broken into lines.
    pub notes: Vec<String>,
}

impl Figure {
    /// The figure as the text of an SVG file.
    pub fn svg(&self) -> String {
        let width = PANEL_WIDTH * self.panels.len().max(1) as f64;
        let legend = self.legend(width, TITLE_HEIGHT + PANEL_HEIGHT);
        let notes_top = TITLE_HEIGHT + PANEL_HEIGHT + legend.height;
        let notes = broken(&self.notes, width);
        let height = notes_top + LINE_HEIGHT * notes.len() as f64 + 12.0;
        let mut out = Svg(String::new());
        out.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"12\">"
        ));
        out.line(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"));
        out.text((width / 2.0, 28.0), "middle", "font-size=\"17\" font-weight=\"bold\"", &self.title);
        for (place, panel) in self.panels.iter().enumerate() {
            panel.draw(PANEL_WIDTH * place as f64, TITLE_HEIGHT, &mut out);
        }
        out.0.push_str(&legend.drawing.0);
        for (line, note) in notes.iter().enumerate() {
            let y = notes_top + LINE_HEIGHT * (line as f64 + 0.7);
            out.text((LEFT, y), "start", "fill=\"#555555\"", note);
        }
        out.line(format_args!("</svg>"));
        out.0
    }

    /// Each name once, in as many lines as it takes.
    fn legend(&self, width: f64, top: f64) -> Legend {
        let mut names: Vec<(&str, Style)> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            if !names.iter().any(|(name, _)| *name == series.name) {
                names.push((&series.name, series.style));
            }
        }
        let letters = names.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let column = SAMPLE_WIDTH + LETTER_WIDTH * letters as f64 + 24.0;
        let columns = (((width - LEFT - RIGHT) / column) as usize).clamp(1, names.len().max(1));
        // As even as possible: nine names make three lines of three rather than five and four.
        let lines = names.len().div_ceil(columns);
        let columns = names.len().div_ceil(lines.max(1)).max(1);
        let mut drawing = Svg(String::new());
        for (place, (name, style)) in names.iter().enumerate() {
            let x = LEFT + column * (place % columns) as f64;
            let y = top + LINE_HEIGHT * (place / columns) as f64 + LINE_HEIGHT / 2.0;
            drawing.path(&[(x, y), (x + SAMPLE_WIDTH - 8.0, y)], *style);
            drawing.marker((x + (SAMPLE_WIDTH - 8.0) / 2.0, y), *style);
            drawing.text((x + SAMPLE_WIDTH, y + 4.0), "start", "", name);
        }
        Legend { height: LINE_HEIGHT * lines as f64 + 8.0, drawing }
    }
}

struct Legend {
    height: f64,
    drawing: Svg,
}

impl Panel {
    fn draw(&self, left: f64, top: f64, out: &mut Svg) {
        let (x0, x1) = (left + LEFT, left + PANEL_WIDTH - RIGHT);
        let (y0, y1) = (top + PANEL_HEIGHT - BOTTOM, top + TOP);
        let points = || self.series.iter().flat_map(|series| series.points.iter().copied());
        let x = self.x.fit(points().map(|point| point.0));
        let y = self.y.fit(points().map(|point| point.1));
        let middle = f64::midpoint(x0, x1);
        out.text((middle, top + 20.0), "middle", "font-size=\"14\"", &self.title);
        for (value, label) in y.ticks() {
            let at = y0 + (y1 - y0) * y.place(value);
            out.line(format_args!("<path d=\"M{x0:.1} {at:.1}H{x1:.1}\" stroke=\"#dddddd\" fill=\"none\"/>"));
            out.text((x0 - 7.0, at + 4.0), "end", "", &label);
        }
        for (value, label) in x.ticks() {
            let at = x0 + (x1 - x0) * x.place(value);
            out.line(format_args!("<path d=\"M{at:.1} {y0:.1}V{y1:.1}\" stroke=\"#eeeeee\" fill=\"none\"/>"));
            out.text((at, y0 + 18.0), "middle", "", &label);
        }
        out.line(format_args!(
            "<path d=\"M{x0:.1} {y1:.1}V{y0:.1}H{x1:.1}\" stroke=\"#333333\" fill=\"none\"/>"
        ));
        out.text((middle, y0 + 40.0), "middle", "", &self.x.label);
        let (label_x, label_y) = (left + 16.0, f64::midpoint(y0, y1));
        let turned = format!("transform=\"rotate(-90 {label_x:.1} {label_y:.1})\"");
        out.text((label_x, label_y), "middle", &turned, &self.y.label);
        for series in &self.series {
            let shown = series.points.iter().filter(|point| x.shows(point.0) && y.shows(point.1));
            let places: Vec<(f64, f64)> = shown
                .map(|point| (x0 + (x1 - x0) * x.place(point.0), y0 + (y1 - y0) * y.place(point.1)))
                .collect();
            out.path(&places, series.style);
            let few = if places.len() > MARKERS_MAX { Vec::new() } else { places };
            for place in few {
                out.marker(place, series.style);
            }
        }
    }
}

/// Notes, broken where they would leave a figure of this width.
pub(super) fn broken(notes: &[String], width: f64) -> Vec<String> {
    let letters_max = ((width - LEFT - RIGHT) / LETTER_WIDTH) as usize;
    let mut lines = Vec::new();
    for note in notes {
        let mut line = String::new();
        for word in note.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > letters_max {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// The text of a drawing. Writing to a string cannot fail.
pub(super) struct Svg(pub(super) String);

impl Svg {
    pub(super) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, attributes: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let space = if attributes.is_empty() { "" } else { " " };
        self.line(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{space}{attributes}>{text}</text>"
        ));
    }

    fn path(&mut self, points: &[(f64, f64)], style: Style) {
        if points.len() < 2 {
            return;
        }
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = match DASHES[style.shape % DASHES.len()] {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        self.line(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dash}/>",
            points.join(" "),
            COLORS[style.color % COLORS.len()]
        ));
    }

    /// A circle, a square, a triangle or a diamond; hollow ones would hide less, but are hard to see in a legend.
    fn marker(&mut self, (x, y): (f64, f64), style: Style) {
        let color = COLORS[style.color % COLORS.len()];
        let outline = match style.shape % DASHES.len() {
            0 => {
                self.line(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{color}\"/>"));
                return;
            }
            1 => [(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)],
            2 => [(0.0, -4.4), (2.2, -0.3), (4.2, 3.4), (-4.2, 3.4)],
            _ => [(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)],
        };
        let outline = outline.map(|(right, down)| format!("{:.1},{:.1}", x + right, y + down));
        self.line(format_args!("<polygon points=\"{}\" fill=\"{color}\"/>", outline.join(" ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: Vec<(f64, f64)>) -> Figure {
        let series = |name: &str, shape| Series {
            name: name.to_owned(),
            style: Style { color: 0, shape },
            points: points.clone(),
        };
        let panel = |title: &str, series| Panel {
            title: title.to_owned(),
            x: Axis { label: "nodes".to_owned(), scale: Scale::Logarithmic },
            y: Axis { label: "transactions/s".to_owned(), scale: Scale::Linear },
            series,
        };
        Figure {
            title: "A < B & C".to_owned(),
            panels: vec![
                panel("Total", vec![series("one", 0), series("two", 1)]),
                panel("Each", vec![series("one", 0)]),
            ],
            notes: vec!["Seed 1.".to_owned()],
        }
    }

    #[test]
    fn a_figure_has_everything_once() {
        let svg = figure(vec![(1.0, 10.0), (10.0, 50.0), (100.0, 90.0)]).svg();
        assert_eq!(svg, figure(vec![(1.0, 10.0), (10.0, 50.0), (100.0, 90.0)]).svg());
        // Three lines in the panels and two in the legend.
        assert_eq!(svg.matches("<polyline").count(), 5);
        assert_eq!(svg.matches(">one</text>").count(), 1);
        assert_eq!(svg.matches(">transactions/s</text>").count(), 2);
        // A circle for each of two times three points and the legend.
        assert_eq!(svg.matches("<circle").count(), 7);
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert!(svg.contains(">A &lt; B &amp; C</text>") && svg.contains(">Seed 1.</text>"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn points_stand_where_the_axes_say() {
        let svg = figure(vec![(1.0, 0.0), (100.0, 100.0)]).svg();
        let (left, right) = (LEFT, PANEL_WIDTH - RIGHT);
        let (bottom, top) = (TITLE_HEIGHT + PANEL_HEIGHT - BOTTOM, TITLE_HEIGHT + TOP);
        assert!(
            svg.contains(&format!("<polyline points=\"{left:.1},{bottom:.1} {right:.1},{top:.1}\"")),
            "{svg}"
        );
    }

    #[test]
    fn long_lines_have_no_markers() {
        let markers = |points: u32| {
            let svg = figure((1..=points).map(|point| (f64::from(point), 1.0)).collect()).svg();
            svg.matches("<circle").count()
        };
        // On two lines, and one in the legend.
        assert_eq!((markers(40), markers(41)), (81, 1));
    }

    #[test]
    fn long_notes_are_broken() {
        let mut long = figure(vec![(1.0, 1.0), (2.0, 2.0)]);
        long.notes = vec!["word ".repeat(100), "end".to_owned()];
        let lines = broken(&long.notes, PANEL_WIDTH);
        assert_eq!(lines.last().map(String::as_str), Some("end"));
        assert!(lines.len() > 5 && lines.iter().all(|line| line.len() < 65), "{lines:?}");
        assert_eq!(lines.join(" ").split(' ').count(), 101);
        assert!(long.svg().matches("fill=\"#555555\"").count() >= 5);
    }

    #[test]
    fn what_cannot_be_shown_is_left_out() {
        let svg = figure(vec![(0.0, 10.0), (f64::NAN, 20.0), (3.0, f64::INFINITY), (4.0, 7.0)]).svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3);
        let empty = figure(Vec::new()).svg();
        assert!(!empty.contains("NaN") && empty.contains(">one</text>"), "{empty}");
    }
}
