package usertcp

// ShowAhead has shown called with octets that have arrived ahead of others, as soon as their segment has come and
// passed all of TCP's checks. at is their place, counted from the octet that Read would have returned next when
// ShowAhead was called, which is 0. All of them come by Read again, at times even while they are shown. With nil
// nothing is shown any more.
//
// shown keeps nothing of the octets. It is never called twice at once, and not after the next ShowAhead has returned, which
// waits for a call under way: ShowAhead is not to be called by shown, nor with a lock that shown takes. No other
// method has that limit.
//
// Where segments overlap and do not agree, Read may return what was not shown first. What must not depend on
// that has to be checked, as MPA does with its CRC.
func (c *Conn) ShowAhead(shown func(at uint64, octets []byte)) { c.flow.showTo(shown) }

// EMSS returns the octets of payload of a full segment, as of now: the MTU of the path, or the peer's MSS, less the headers and
// 40 octets of options, which leaves room for selective acknowledgements. It does not wait.
func (c *Conn) EMSS() int { return int(c.flow.emss.Load()) }
