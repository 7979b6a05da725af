package layout

// A Content is a part of an FPDU as it stands on the stream: some bytes, and the markers
// between them if there are any. It refers to the bytes and does not copy them.
type Content struct {
	b []byte // from its first byte on, or from the marker in front of that, to its last
	// Only where markers stand within b:
	n     int32 // bytes, markers not counted; 0 without markers
	phase int32 // distance of b in the stream from where the last marker began
}

// Plain is bytes without markers between them.
func Plain(b []byte) Content { return Content{b: b} }

// ContentAt is the n bytes at the start of b, which begins at a stream offset. All of them
// are in b, and they are not more than an FPDU can have.
func ContentAt(b []byte, n int, offset uint64, markers bool) Content {
	if !markers {
		return Content{b: b[:n]}
	}
	return contentAt(b, n, offset%MarkerInterval)
}

func contentAt(b []byte, n int, phase uint64) Content {
	switch size := span(phase, n); {
	case n == 0:
		return Content{}
	case size == n:
		return Content{b: b[:n]}
	default:
		return Content{b: b[:size], n: int32(n), phase: int32(phase)}
	}
}

// span returns how much of the stream n bytes take.
func span(phase uint64, n int) int { return n + MarkerLen*MarkersIn(phase, n) }

// Len returns the number of bytes, without markers.
func (c Content) Len() int {
	if c.n > 0 {
		return int(c.n)
	}
	return len(c.b)
}

// Whole reports whether no marker stands within it.
func (c Content) Whole() bool { return c.n == 0 }

// CopyTo copies the first bytes to dst, as many as there are or as dst has room for.
func (c Content) CopyTo(dst []byte) {
	if c.n > 0 {
		AppendContent(dst[:0], uint64(c.phase), c.b, min(len(dst), int(c.n)))
		return
	}
	copy(dst, c.b)
}

// Cut divides it after n bytes, 0 to Len.
func (c Content) Cut(n int) (front, rest Content) {
	if c.n > 0 {
		return c.cut(n)
	}
	return Content{b: c.b[:n]}, Content{b: c.b[n:]}
}

func (c Content) cut(n int) (front, rest Content) {
	phase := uint64(c.phase)
	at := span(phase, n)
	return contentAt(c.b, n, phase), contentAt(c.b[at:], int(c.n)-n, (phase+uint64(at))%MarkerInterval)
}

// Squeeze moves the bytes together over the markers, and returns them. Those in front of the
// first marker stay where they are. The Content is of no use after that.
func (c Content) Squeeze() []byte {
	if c.n > 0 {
		return c.squeeze()
	}
	return c.b[:len(c.b):len(c.b)]
}

func (c Content) squeeze() []byte {
	run, here := ToMarker(uint64(c.phase))
	if here {
		run = 0
	}
	return AppendContent(c.b[:run], uint64(c.phase)+uint64(run), c.b[run:], int(c.n)-run)
}
