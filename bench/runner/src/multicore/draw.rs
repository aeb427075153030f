//! Figures 11 to 16 of the paper, with our results.

use super::measure::Point;
use super::split::PARTS;
use super::{
    CORES, COUNTED, PAPER_AT_ONCE, PAPER_BUSY, PAPER_PER_SECOND, WAYS, Way, mean_of_others,
    of_first,
};
use crate::plot::{Axis, Figure, Panel, Series, Shape, Tone};

const X: &str = "requests that begin in a second";
const CLOCKED: &str = "% of 3.4 GHz, counted at an instruction a clock";

pub(super) fn figure(points: &[Point]) -> Figure {
    let against_load = |title: &str, y: &str, figure: fn(&Point) -> f64| Panel {
        title: title.into(),
        x: Axis::linear(X),
        y: Axis::linear(y),
        series: WAYS.map(|way| line(points, way, figure)).into(),
    };
    let mut first =
        against_load("Figure 11: the first core", CLOCKED, |point| of_first(&point.clocked()));
    first.series.push(mark("paper: 92 %, only the card", PAPER_BUSY));
    let mut others = against_load("Figure 11: the other three, on the average", CLOCKED, |point| {
        mean_of_others(&point.clocked())
    });
    (first.y, others.y) = (Axis::logarithmic(CLOCKED), Axis::logarithmic(CLOCKED));
    let in_time = |title: &str, figure: fn(&Point) -> f64| Panel {
        y: Axis::logarithmic("ms"),
        ..against_load(title, "ms", figure)
    };
    let mut at_once = against_load("Figure 14: most requests at once", "requests", |point| {
        point.seen.most_at_once as f64
    });
    at_once.y = Axis::logarithmic("requests");
    at_once.series.push(mark("paper: about 100", PAPER_AT_ONCE));
    Figure {
        title: "A web server on four cores: the work of each".into(),
        caption: "After figures 11 to 16 of Soundararajan, Karne, Wijesinha, Ordouie and Chang, “Design Issues in Running a Web Server on Bare PC \
                  Multi-core Architecture”; of their curves the text gives the points that are marked. Theirs are four real cores at 3.4 GHz, ours are emulated (TCG): times \
                  are the emulator’s, instructions are the machine’s. A page of 4 KB and a connection for each request. One queue of the card’s, and the first \
                  core serves too, or looks only after the card; or a queue each. What is counted for a request is counted at 2,000 a second.",
        panels: vec![
            first,
            others,
            against_load("Figure 11, emulated: the first core", "% of the time", |point| {
                of_first(&point.busy)
            }),
            against_load("Figure 11, emulated: the other three", "% of the time", |point| {
                mean_of_others(&point.busy)
            }),
            each_core(points),
            parts(points),
            in_time("Figure 13: stay in the list, mean", |point| point.seen.stay.mean_ms),
            in_time("Figure 13: stay in the list, most", |point| point.seen.stay.most_ms),
            at_once,
            passed(points),
            in_time("Figure 15: first response, mean", |point| point.seen.first_response.mean_ms),
            in_time("Figure 16: connection, mean", |point| point.seen.connection.mean_ms),
        ],
    }
}

fn tone(way: Way) -> Tone {
    match way {
        Way::Serves => Tone::Second,
        Way::OnlyCard => Tone::Other,
        Way::QueueEach => Tone::Ours,
    }
}

fn line(points: &[Point], way: Way, figure: impl Fn(&Point) -> f64) -> Series {
    let points_of_way = points.iter().filter(|point| point.way == way);
    let points = points_of_way.map(|point| (f64::from(point.asked), figure(point))).collect();
    Series { name: way.label().into(), tone: tone(way), shape: Shape::Line, points }
}

fn mark(name: &str, figure: f64) -> Series {
    Series {
        name: name.into(),
        tone: Tone::Paper,
        shape: Shape::Marks,
        points: vec![(PAPER_PER_SECOND, figure)],
    }
}

/// The instructions of the cores, as bars.
fn bars(points: &[Point], way: Way, figures: impl Fn(&Point) -> Vec<f64>) -> Series {
    let point = points.iter().find(|point| point.way == way && point.asked == COUNTED);
    let figures = point.map(figures).unwrap_or_default();
    let points = figures.iter().enumerate().map(|(at, figure)| (at as f64, *figure)).collect();
    Series { name: way.label().into(), tone: tone(way), shape: Shape::Bars, points }
}

fn each_core(points: &[Point]) -> Panel {
    Panel {
        title: "Counted: each core, for a request of the machine’s".into(),
        x: Axis::names("core", (0..CORES).map(|core| core.to_string()).collect()),
        y: Axis::linear("guest instructions"),
        series: WAYS.map(|way| bars(points, way, |point| point.executed.clone())).into(),
    }
}

fn parts(points: &[Point]) -> Panel {
    let of_first = |point: &Point| point.split.parts().map(|(_, count)| count).collect();
    Panel {
        title: "Figure 12: what the first core does for a request".into(),
        x: Axis::names("", PARTS.iter().map(|(_, name)| (*name).to_string()).collect()),
        y: Axis::linear("guest instructions"),
        series: WAYS.map(|way| bars(points, way, of_first)).into(),
    }
}

fn passed(points: &[Point]) -> Panel {
    let mean_of = |way: Way| {
        let points_of_way = points.iter().filter(|point| point.way == way);
        let points =
            points_of_way.filter_map(|point| Some((f64::from(point.asked), point.passed?.0 / 1e3)));
        Series {
            name: way.label().into(),
            tone: tone(way),
            shape: Shape::Line,
            points: points.collect(),
        }
    };
    Panel {
        title: "Frames on their way from core to core, mean".into(),
        x: Axis::linear(X),
        y: Axis::logarithmic("ms"),
        series: [Way::Serves, Way::OnlyCard].map(mean_of).into(),
    }
}
