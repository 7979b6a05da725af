package ulp

import "slices"

// Bounds of what is remembered, and of the guess.
const (
	maxRequests  = 1024 // of an end, without an answer
	maxSTags     = 1024 // of an end
	maxPerSTag   = 8    // pieces of memory under one STag
	maxUndecided = 64   // Sends, after which nothing is guessed any more
	maxAccesses  = 4096 // or Writes and Reads
	maxEarly     = 16   // lines that were not said yet
)

// A Message is a Send, or its first bytes.
type Message struct {
	Data   []byte
	Length int // bytes of all of it

	n int // its number in the connection, from 1
}

// whole reports whether the data is all of the message.
func (m *Message) whole() bool { return len(m.Data) == m.Length }

// An Access is an RDMA Write, or the Request of an RDMA Read, of memory of the other end.
type Access struct {
	Read   bool
	STag   uint32
	TO     uint64
	Length uint32 // bytes, of a Write at least those of Data
	Data   []byte // the first bytes of a Write
}

// Said is what a message or an access says. M is how the caller names it.
type Said[M any] struct {
	Mark     M
	Protocol string
	Text     string
	// Failure is what has failed, if a status tells of it, and Advice what to do about that, if that is known.
	Failure, Advice string
	// Answers tells that the message answers an earlier one, and Asked is the mark of that.
	Answers bool
	Asked   M
}

// A line is what is said, by a protocol that knows nothing of marks.
type line struct {
	text, failure, advice string
	failed                bool // be that a failure or not
	answers               int  // the number of a message, 0 for none
}

// How much a message speaks for a protocol.
const (
	against = -1
	silent  = 0
	fits    = 1 // it has the form
	agrees  = 2 // and it answers, or uses, what came before; or the form leaves no doubt
)

// Points that make a protocol known, and from how many messages, with a hint and without one.
const (
	hintedPoints, hintedMessages = 3, 2
	plainPoints, plainMessages   = 8, 4
)

// A protocol reads the messages of one connection. An end is 0 or 1.
type protocol interface {
	// send reads a Send of an end, and says how much it speaks for the protocol.
	send(end int, m *Message) (line, int)
	// access reads what an end does to memory of the other one.
	access(end int, a *Access) (line, int)
	// size is what it remembers, in bytes, about.
	size() int
}

// A candidate is a protocol that the connection may have.
type candidate[M any] struct {
	name     string
	protocol protocol
	hinted   bool
	points   int
	messages int
	agreed   bool // one of them agrees with what came before
	early    []Said[M]
}

// A Conn is what is known of the protocol of a connection. It is not safe for concurrent use.
type Conn[M any] struct {
	// Heads are for the caller: the beginnings of Sends that are not whole yet, by the end that sends. Forgetting drops them.
	Heads [2][]byte
	// Forgotten: the Group has made it forget everything.
	Forgotten bool

	group         *Group[M]
	before, after *Conn[M] // in the Group
	counted       int      // bytes there

	candidates []*candidate[M]
	known      bool // there is one candidate, which it is
	sends      int
	accesses   int // before it was known
	marks      []M // of the latest Sends, by their number
}

func newConn[M any](port uint16, private [2][]byte) *Conn[M] {
	c := &Conn[M]{}
	for _, k := range kinds {
		if p, hinted := k.start(port, private); p != nil {
			c.candidates = append(c.candidates, &candidate[M]{name: k.name, protocol: p, hinted: hinted})
		}
	}
	return c
}

// Protocol names the protocol; it is empty if it is not known.
func (c *Conn[M]) Protocol() string {
	if !c.known {
		return ""
	}
	return c.candidates[0].name
}

// Off reports whether nothing will be said any more.
func (c *Conn[M]) Off() bool { return len(c.candidates) == 0 }

// Send takes a Send of an end, and returns what can be said: of it, and of those before it if the protocol is known now.
func (c *Conn[M]) Send(mark M, end int, m Message) []Said[M] {
	c.sends++
	m.n = c.sends
	if len(c.marks) < maxRequests {
		c.marks = append(c.marks, mark)
	} else {
		c.marks[(c.sends-1)%maxRequests] = mark
	}
	defer c.Count()
	return c.take(mark, func(p protocol) (line, int) { return p.send(end, &m) })
}

// Access takes a Write or a Read Request of an end, as Send does.
//
// Before the first Send nothing is known of any memory.
func (c *Conn[M]) Access(mark M, end int, a Access) []Said[M] {
	if c.sends == 0 {
		return nil
	}
	if !c.known {
		c.accesses++
	}
	defer c.Count()
	return c.take(mark, func(p protocol) (line, int) { return p.access(end, &a) })
}

func (c *Conn[M]) take(mark M, read func(protocol) (line, int)) (said []Said[M]) {
	for _, k := range c.candidates {
		l, verdict := read(k.protocol)
		k.points += verdict
		if verdict == against && !c.known {
			k.protocol = nil
			continue
		}
		if verdict > silent {
			k.messages++
			k.agreed = k.agreed || verdict == agrees
		}
		if l.text != "" && verdict != against {
			k.say(c.said(mark, l))
		}
	}
	if c.known {
		return c.candidates[0].take()
	}
	return c.decide()
}

// decide chooses a candidate, if there is reason for it.
func (c *Conn[M]) decide() []Said[M] {
	c.candidates = slices.DeleteFunc(c.candidates, func(k *candidate[M]) bool { return k.protocol == nil })
	for _, k := range c.candidates {
		if k.convinces() {
			c.candidates, c.known = []*candidate[M]{k}, true
			return k.take()
		}
	}
	if c.sends >= maxUndecided || c.accesses >= maxAccesses || len(c.candidates) == 0 {
		c.Leave()
	}
	return nil
}

func (k *candidate[M]) convinces() bool {
	if !k.agreed {
		return false
	}
	if k.hinted && k.points >= hintedPoints && k.messages >= hintedMessages {
		return true
	}
	return k.points >= plainPoints && k.messages >= plainMessages
}

// said is what a line says at a mark.
func (c *Conn[M]) said(mark M, l line) Said[M] {
	s := Said[M]{Mark: mark, Text: l.text, Failure: l.failure, Advice: l.advice}
	if l.answers > 0 && c.sends-l.answers < maxRequests {
		s.Answers, s.Asked = true, c.marks[(l.answers-1)%maxRequests]
	}
	return s
}

// say keeps what is said until it may be.
func (k *candidate[M]) say(s Said[M]) {
	if len(k.early) == maxEarly {
		k.early = slices.Delete(k.early, 0, 1)
	}
	s.Protocol = k.name
	k.early = append(k.early, s)
}

// take returns what was kept. It is valid until the next message.
func (k *candidate[M]) take() []Said[M] {
	said := k.early
	k.early = k.early[:0]
	return said
}
