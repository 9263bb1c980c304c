use super::*;
use crate::rate::TraceError;

fn parse(text: &str, form: LossTraceForm) -> LossTrace {
    LossTrace::parse(text, form).expect("a trace")
}

fn replay(trace: LossTrace, times_ms: &[u64]) -> String {
    let mut process = process(&LossConfig::Trace(trace), 1);
    let lost = times_ms.iter().map(|millis| process.is_lost(Time::from_millis(*millis)));
    lost.map(|lost| if lost { '1' } else { '0' }).collect()
}

#[test]
fn outcomes_are_replayed_over_and_over_or_once() {
    let text = "0 1 # first line\n\n  1\n";
    let times = [0; 8];
    let again = parse(text, LossTraceForm::Outcomes { repeat: true });
    assert_eq!(again.mean_loss(), p(2.0 / 3.0));
    assert_eq!(replay(again, &times), "01101101");
    let once = parse(text, LossTraceForm::Outcomes { repeat: false });
    assert_eq!(replay(once, &times), "01100000");
}

#[test]
fn packets_are_lost_by_number() {
    let trace = parse("1\n2\n# a gap\n6\n", LossTraceForm::Indices);
    assert_eq!(replay(trace, &[0; 9]), "011000100");
}

#[test]
fn each_instant_takes_the_next_packet() {
    let trace = parse("10ms\n10ms\n0.035s", LossTraceForm::Times);
    assert_eq!(replay(trace, &[0, 9, 10, 11, 12, 34, 35, 36]), "00110010");
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    let error = |text, form| LossTrace::parse(text, form).expect_err("no trace");
    let outcomes = LossTraceForm::Outcomes { repeat: true };
    let TraceError { line, given, .. } = error("01\n# x\n012\n", outcomes);
    assert_eq!((line, given.as_str()), (3, "2"));
    assert_eq!(error("5\n5\n", LossTraceForm::Indices).line, 2);
    assert_eq!(error("-1", LossTraceForm::Indices).line, 1);
    assert_eq!(error("1s\n\n500ms", LossTraceForm::Times).line, 3);
    assert_eq!(error("1.5", LossTraceForm::Times).line, 1);
    for form in [outcomes, LossTraceForm::Indices, LossTraceForm::Times] {
        assert_eq!(error("# nothing\n \n", form).line, 0);
    }
    let long = error(&"x".repeat(10_000), LossTraceForm::Indices);
    assert!(long.to_string().len() < 200, "{long}");
    let empty = LossTrace::Outcomes { lost: [].into(), repeat: true };
    assert_eq!(LossConfig::Trace(empty).validate(), Err(LossConfigError::EmptyTrace));
}
