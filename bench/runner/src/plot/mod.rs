//! Figures for the benches' pages: SVG, drawn like the papers' figures, legible on light and on
//! dark pages.
//!
//! The module is our own, because plotting libraries write colours into each element. A page's
//! colour scheme (`prefers-color-scheme`) needs classes. A figure consists of panels beside and
//! below each other. A panel has two axes, a legend and series of points.

mod axis;

#[cfg(test)]
mod tests;

pub(super) use axis::Axis;

use host::{Failure, Repository, say};

/// A drawing with one or more panels.
pub(super) struct Figure {
    pub(super) title: String,
    /// The corresponding figure of a paper, and facts that a reader must know.
    pub(super) caption: &'static str,
    pub(super) panels: Vec<Panel>,
}

/// Points over two axes.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
}

/// Points that belong together.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) tone: Tone,
    pub(super) shape: Shape,
    pub(super) points: Vec<(f64, f64)>,
}

/// The subject of a series. Each subject has its own colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    /// The engine.
    Ours,
    /// A second series of ours.
    Second,
    /// A third series of ours.
    Third,
    /// A fourth series of ours.
    Fourth,
    /// A variant of ours that performs worse, or a peer.
    Other,
    /// The paper's results.
    Paper,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Points, joined.
    Line,
    /// A dashed line without points: a bound or a law.
    Dashes,
    /// Hollow points without a line: single values.
    Marks,
    /// Bars, beside those of other series.
    Bars,
}

const WIDTH: f64 = 920.0;
const PANEL_HEIGHT: f64 = 350.0;
/// The margins from a panel's edges to its axes. The title and the legend are above the axes.
const LEFT: f64 = 74.0;
const RIGHT: f64 = 26.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 54.0;
const HEAD: f64 = 40.0;
const CAPTION_LINE: f64 = 18.0;
const CAPTION_CHARACTERS_MAX: usize = 125;
const LEGEND_LINE: f64 = 17.0;
/// The width of all bars at a value, as a part of the distance between two values.
const BARS_PART: f64 = 0.7;
/// The approximate width of a character of the legend.
const CHARACTER: f64 = 6.3;

const STYLE: &str = "\
text{font-family:system-ui,sans-serif;font-size:12px;fill:#49525c}.title{font-size:16px;font-weight:600;fill:#1d2733}.name{font-size:13px;font-weight:600;fill:#1d2733}\
.plot{fill:#faf8f4;stroke:#8a8172}.grid{stroke:#e3ddd0}.line{fill:none;stroke-width:2}.dashes{fill:none;stroke-width:1.6;stroke-dasharray:6 4}.hollow{stroke-width:2}\
.ours{stroke:#1f5fbf;fill:#1f5fbf}.second{stroke:#1b7f4d;fill:#1b7f4d}.third{stroke:#8a4fbf;fill:#8a4fbf}.fourth{stroke:#a86400;fill:#a86400}.other{stroke:#b3261e;fill:#b3261e}.paper{stroke:#1d2733;fill:#1d2733}\
.line,.dashes{fill:none}.hollow{fill:#faf8f4}\
@media (prefers-color-scheme: dark){text{fill:#b4bdc7}.title,.name{fill:#eef2f6}.plot,.hollow{fill:#171b20}.plot{stroke:#77705f}.grid{stroke:#2c3138}\
.ours{stroke:#7fb0ff}.second{stroke:#6fd3a0}.third{stroke:#c9a0f5}.fourth{stroke:#f0b860}.other{stroke:#ff8a80}.paper{stroke:#eef2f6}\
.dot.ours{fill:#7fb0ff}.dot.second{fill:#6fd3a0}.dot.third{fill:#c9a0f5}.dot.fourth{fill:#f0b860}.dot.other{fill:#ff8a80}.dot.paper{fill:#eef2f6}}";

impl Figure {
    /// Writes the figure to `docs/figures/NAME.svg`.
    pub(super) fn write(&self, repository: &Repository, name: &str) -> Result<(), Failure> {
        let path = repository.path("docs/figures").join(name).with_extension("svg");
        std::fs::write(&path, self.svg())
            .map_err(Failure::io(&format!("writing {}", path.display())))?;
        say(format_args!("drawn in docs/figures/{name}.svg"));
        Ok(())
    }

    pub(super) fn svg(&self) -> String {
        let columns = if self.panels.len() == 1 { 1 } else { 2 };
        let rows = self.panels.len().div_ceil(columns);
        let panel_width = WIDTH / columns as f64;
        let caption_top = HEAD + rows as f64 * PANEL_HEIGHT;
        let caption = lines_of(self.caption, CAPTION_CHARACTERS_MAX);
        let height = caption_top + caption.len() as f64 * CAPTION_LINE + 12.0;
        let mut svg = Svg::default();
        svg.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\">"
        ));
        svg.add(format_args!("<title>{}</title>", escaped(&self.title)));
        svg.add(format_args!("<desc>{}</desc>", escaped(self.caption)));
        svg.add(format_args!("<style>{STYLE}</style>"));
        svg.text("title", 16.0, 26.0, "start", &self.title);
        for (index, panel) in self.panels.iter().enumerate() {
            let left = (index % columns) as f64 * panel_width;
            let top = HEAD + (index / columns) as f64 * PANEL_HEIGHT;
            panel.draw(&mut svg, Area { left, top, width: panel_width, height: PANEL_HEIGHT });
        }
        for (index, line) in caption.iter().enumerate() {
            svg.text(
                "what",
                16.0,
                caption_top + (index as f64 + 0.6) * CAPTION_LINE,
                "start",
                line,
            );
        }
        svg.add(format_args!("</svg>"));
        svg.0
    }
}

/// A part of the drawing, in its units.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Area {
    fn right(self) -> f64 {
        self.left + self.width
    }

    fn bottom(self) -> f64 {
        self.top + self.height
    }
}

impl Panel {
    fn draw(&self, svg: &mut Svg, area: Area) {
        svg.text("name", area.left + 16.0, area.top + 18.0, "start", &self.title);
        self.legend(svg, area);
        let plot = Area {
            left: area.left + LEFT,
            top: area.top + TOP,
            width: area.width - LEFT - RIGHT,
            height: area.height - TOP - BOTTOM,
        };
        svg.add(format_args!(
            "<rect class=\"plot\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            plot.left, plot.top, plot.width, plot.height
        ));
        let across =
            self.x.span(self.series.iter().flat_map(|series| &series.points).map(|point| point.0));
        let up =
            self.y.span(self.series.iter().flat_map(|series| &series.points).map(|point| point.1));
        let x = |value: f64| plot.left + across.part(value) * plot.width;
        let y = |value: f64| plot.bottom() - up.part(value) * plot.height;
        for (value, name) in across.ticks() {
            svg.path("grid", &format!("M{:.1} {:.1}V{:.1}", x(value), plot.top, plot.bottom()));
            svg.text("what", x(value), plot.bottom() + 17.0, "middle", &name);
        }
        for (value, name) in up.ticks() {
            svg.path("grid", &format!("M{:.1} {:.1}H{:.1}", plot.left, y(value), plot.right()));
            svg.text("what", plot.left - 7.0, y(value) + 4.0, "end", &name);
        }
        svg.text(
            "what",
            plot.left + plot.width / 2.0,
            plot.bottom() + 38.0,
            "middle",
            &self.x.label,
        );
        svg.text("what", area.left + 16.0, plot.top - 9.0, "start", &self.y.label);
        for series in &self.series {
            let points =
                series.points.iter().map(|point| (x(point.0), y(point.1))).collect::<Vec<_>>();
            series.draw(svg, &points);
        }
        let place = (across.part(1.0) - across.part(0.0)) * plot.width * BARS_PART;
        self.bars(svg, place, plot.bottom(), |point| (x(point.0), y(point.1)));
    }

    /// Draws the series of bars, side by side around each value. `place`: the total width of the
    /// bars at a value.
    fn bars(&self, svg: &mut Svg, place: f64, ground: f64, at: impl Fn((f64, f64)) -> (f64, f64)) {
        let series = || self.series.iter().filter(|series| series.shape == Shape::Bars);
        let width = place / series().count().max(1) as f64;
        for (index, series) in series().enumerate() {
            let class = series.tone.class();
            for (x, y) in series.points.iter().map(|point| at(*point)) {
                let left = x - place / 2.0 + index as f64 * width;
                svg.add(format_args!(
                    "<rect class=\"dot {class}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    width - 1.0,
                    ground - y
                ));
            }
        }
    }

    /// Draws the legend in at most two lines above the plot.
    fn legend(&self, svg: &mut Svg, area: Area) {
        let (mut left, mut line) = (area.left + 16.0, 0.0);
        for series in &self.series {
            let width = 34.0 + series.name.chars().count() as f64 * CHARACTER + 14.0;
            if left + width > area.right() && left > area.left + 16.0 {
                (left, line) = (area.left + 16.0, line + 1.0);
            }
            let middle = area.top + 36.0 + line * LEGEND_LINE;
            let ends = match series.shape {
                Shape::Marks => vec![(left + 14.0, middle - 4.0)],
                Shape::Bars => {
                    let class = series.tone.class();
                    svg.add(format_args!(
                        "<rect class=\"dot {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"9\"/>",
                        left + 8.0,
                        middle - 9.0
                    ));
                    Vec::new()
                }
                Shape::Line | Shape::Dashes => {
                    vec![(left, middle - 4.0), (left + 28.0, middle - 4.0)]
                }
            };
            series.draw(svg, &ends);
            svg.text("what", left + 34.0, middle, "start", &series.name);
            left += width;
        }
    }
}

impl Series {
    fn draw(&self, svg: &mut Svg, points: &[(f64, f64)]) {
        let class = self.tone.class();
        let way: String = points
            .iter()
            .enumerate()
            .map(|(index, (x, y))| format!("{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' }))
            .collect();
        match self.shape {
            // The panel draws bars, because their position depends on the other series.
            Shape::Bars => {}
            Shape::Dashes => svg.path(&format!("dashes {class}"), &way),
            Shape::Line => {
                svg.path(&format!("line {class}"), &way);
                for (x, y) in points {
                    svg.add(format_args!(
                        "<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
                    ));
                }
            }
            Shape::Marks => {
                for (x, y) in points {
                    let way = format!("M{x:.1} {:.1}l6 6l-6 6l-6 -6z", y - 6.0);
                    svg.path(&format!("{class} hollow"), &way);
                }
            }
        }
    }
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Ours => "ours",
            Tone::Second => "second",
            Tone::Third => "third",
            Tone::Fourth => "fourth",
            Tone::Other => "other",
            Tone::Paper => "paper",
        }
    }
}

#[derive(Default)]
struct Svg(String);

impl Svg {
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.0.push_str(&element.to_string());
        self.0.push('\n');
    }

    fn path(&mut self, class: &str, way: &str) {
        self.add(format_args!("<path class=\"{class}\" d=\"{way}\"/>"));
    }

    fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }
}

/// `text` in lines of at most `characters_max` characters, unless a word is longer.
fn lines_of(text: &str, characters_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= characters_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
