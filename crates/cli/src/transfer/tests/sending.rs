//! The offering side: entries offered, and bytes sent from the offset asked for.

use super::*;

fn read(
    reading: &mut Reading<'_>,
    request: Request,
) -> Result<(Vec<Frame>, Vec<u8>), TransferError> {
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    reading.read(request, &mut |outgoing| {
        match outgoing {
            Outgoing::Frame(frame) => frames.push(frame),
            Outgoing::Data(data) => bytes.extend(data),
        }
        true
    })?;
    Ok((frames, bytes))
}

fn source(paths: &[&Path]) -> Source {
    let files = paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    Source::new(files, "stdin".to_owned(), Pick::new(&[], false).unwrap())
}

#[test]
fn directories_are_offered_whole_and_in_order() {
    let place = Place::new();
    for name in ["d/b/2", "d/b/10", "d/a", "e"] {
        fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        fs::write(place.path(name), name).unwrap();
    }
    fs::write(place.path("d/.anabranch-x.part"), "").unwrap();
    std::os::unix::fs::symlink("a", place.path("d/link")).unwrap();
    let offer = source(&[&place.path("d"), &place.path("e")]).collect().unwrap();
    let names = |offer: &super::super::source::Offer| -> Vec<String> {
        offer.manifest.entries().map(|entry| entry.name.to_string()).collect()
    };
    assert_eq!(names(&offer), ["d", "d/a", "d/b", "d/b/10", "d/b/2", "e"]);
    assert_eq!(offer.skipped.len(), usize::from(cfg!(unix)));
    let name = |text: &str| Name::new(text).unwrap();
    let part = offer.clone().wanted(&[name("d/b"), name("e")]).unwrap();
    assert_eq!(names(&part), ["d/b", "d/b/10", "d/b/2", "e"]);
    let error = offer.wanted(&[name("d/b"), name("x")]).unwrap_err();
    assert_eq!(code(error), Code::NotFound);
    let twice = source(&[&place.path("d/a"), &place.path("d/../d/a")]).collect().unwrap_err();
    assert_eq!(code(twice), Code::Unreadable);
    assert_eq!(code(source(&[Path::new("/no/such")]).collect().unwrap_err()), Code::Unreadable);
}

#[test]
fn a_file_is_sent_from_where_it_was_asked_for() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..200_000_u32).map(|i| (i % 249) as u8).collect();
    fs::write(place.path("a"), &bytes).unwrap();
    let source = source(&[&place.path("a")]);
    let request = |offset: u64, sum| Request { index: 0, offset, sum };
    let offer = source.collect().unwrap();
    let mut reading = Reading::new(&offer);
    for (at, told) in [(0, false), (1, true), (70_000, true), (70_001, false), (200_000, true)] {
        let offset = at as u64;
        if told {
            let (frames, rest) = read(&mut reading, request(offset, true)).unwrap();
            let sum = sum(&bytes[..at]);
            assert_eq!((frames, rest.len()), (vec![Frame::Sum { index: 0, offset, sum }], 0));
        }
        let (frames, rest) = read(&mut reading, request(offset, false)).unwrap();
        let end = Frame::FileEnd { index: 0, size: 200_000, sum: sum(&bytes) };
        assert_eq!(frames, [Frame::File { index: 0, offset }, end]);
        assert!(rest == bytes[at..]);
    }
    for wrong in [
        request(200_001, false),
        request(200_001, true),
        Request { index: 1, ..request(0, false) },
        Request { index: 1, ..request(0, true) },
    ] {
        assert_eq!(code(read(&mut reading, wrong).unwrap_err()), Code::Protocol);
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_noticed() {
    use std::io::Write;
    let place = Place::new();
    fs::write(place.path("a"), vec![1; 300_000]).unwrap();
    let offer = source(&[&place.path("a")]).collect().unwrap();
    let request = Request { index: 0, offset: 0, sum: false };
    let mut reading = Reading::new(&offer);
    let mut grown = false;
    let error = reading.read(request, &mut |_| {
        if !grown {
            let mut file = File::options().append(true).open(place.path("a")).unwrap();
            file.write_all(b"more").unwrap();
            grown = true;
        }
        true
    });
    assert_eq!(code(error.unwrap_err()), Code::SourceChanged);
    assert_eq!(code(reading.read(request, &mut |_| true).unwrap_err()), Code::SourceChanged);
    let sum = Request { sum: true, ..request };
    assert_eq!(code(reading.read(sum, &mut |_| true).unwrap_err()), Code::SourceChanged);
}
