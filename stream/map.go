package stream

import (
	"cmp"
	"fmt"
	"net"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/internal/rsockets"
)

// A Mapping is memory of this end that the peer may write into, by WriteAt or by riowrite of rdma-core.
type Mapping struct {
	c  *Conn
	mr *iwarp.MR
	at int // its entry in the peer's table
}

// Map lets the peer write into buf, whose first byte gets the given offset. buf is the peer's until Close of the
// Mapping or of the Conn.
//
// The peer must have room for maps: Config.Maps, or RDMA_IOMAPSIZE of rdma-core. Without room the error wraps
// ErrNoMaps. A peer that is rdma-core takes no more than a quarter of its credits in all.
//
// The stream orders both ends. The peer knows of the Mapping when it has read what was written to the stream after
// Map returned. What the peer has written to buf is there when this end has read what the peer wrote to the stream
// after it. Among Mappings with the same offset, the peer writes to the last one, even if that is closed.
func (c *Conn) Map(buf []byte, offset uint64) (*Mapping, error) {
	if !c.made() {
		return nil, c.opError("map", errNoConn)
	}
	m, err := c.mapMemory(buf, offset)
	return m, c.opError("map", err)
}

func (c *Conn) mapMemory(buf []byte, offset uint64) (*Mapping, error) {
	if n := uint64(len(buf)); n == 0 || n > 1<<32-1 || ddp.Wraps(offset, n) {
		return nil, fmt.Errorf("%w: a map of length %d at offset %d", iwarp.ErrInvalid, len(buf), offset)
	}
	if err := c.enter(&c.wr); err != nil {
		return nil, err
	}
	defer c.wr.gate.leave()
	if err := c.drain(maxPending - 1); err != nil { // The word that announces it counts as a piece.
		return nil, err
	}
	mr, err := c.pd.RegisterOptions(buf, iwarp.MROptions{Access: iwarp.RemoteWrite, QP: c.qp})
	if err != nil {
		return nil, err
	}
	m := &Mapping{c: c, mr: mr}
	if err := c.awaitEntry(m); err != nil {
		_ = mr.Deregister()
		return nil, err
	}
	if err := c.announceMap(m, offset); err != nil {
		_ = m.Close()
		return nil, err
	}
	return m, nil
}

// awaitEntry takes a free entry of the peer's table for a Mapping, and waits for a credit for the word that announces
// it.
func (c *Conn) awaitEntry(m *Mapping) (err error) {
	waited := c.await(&c.wr, func() (done bool) {
		done, err = c.tryEntry(m)
		return done
	})
	return cmp.Or(waited, err)
}

// tryEntry is awaitEntry without a wait: done reports that none is needed. The caller holds c.mu.
func (c *Conn) tryEntry(m *Mapping) (done bool, err error) {
	if m.at = slices.Index(c.maps, nil); m.at < 0 {
		return true, ErrNoMaps
	}
	if err := c.unwritable(); err != nil {
		return true, err
	}
	if c.ep.MapRoom() == rsockets.MapWaits {
		return false, nil
	}
	if !c.ep.TellMap() {
		return true, ErrNoMaps
	}
	c.maps[m.at] = m
	return true, nil
}

// announceMap writes a Mapping into its entry, and sends the word that says so.
func (c *Conn) announceMap(m *Mapping, offset uint64) error {
	peer := c.ep.Peer()
	memory := rsockets.Entry{Place: place(m.mr.Remote(0)), Length: uint32(m.mr.Len())}
	var raw [rsockets.MapLen + rsockets.WordLen]byte
	entry := rsockets.Map{Offset: offset, Entry: memory}.Append(raw[:0], peer.Big)
	word := rsockets.NewWord(rsockets.OpMap, uint32(m.at)).Append(entry, peer.Big)[len(entry):]
	wrs := [2]iwarp.SendWR{
		{Op: iwarp.OpWrite, Inline: entry, Remote: remote(peer.MapSlot(m.at)), Unsignaled: true},
		{ID: c.out.posted + 1, Op: iwarp.OpSend, Inline: word},
	}
	if _, err := c.qp.PostSends(wrs[:]); err != nil {
		return c.whyBroken(err)
	}
	c.out.posted++
	c.out.signaled = c.out.posted
	return nil
}

// ReadAt copies what the peer has written, from byte offset of buf on. It is iwarp.MR.ReadAt: the only safe way to
// look at buf while the peer may write there. So a program can wait for a byte to change.
func (m *Mapping) ReadAt(p []byte, offset int64) (n int, err error) {
	if m == nil || m.c == nil {
		return 0, &net.OpError{Op: "read", Err: errNoMapping}
	}
	return m.mr.ReadAt(p, offset)
}

// Close takes the memory back. The peer is not told: if it writes there afterwards, the connection ends. A second
// Close is no error.
func (m *Mapping) Close() error {
	if m == nil || m.c == nil {
		return &net.OpError{Op: "close", Err: errNoMapping}
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.c.maps[m.at] == m {
		m.c.maps[m.at] = nil
		_ = m.mr.Deregister()
	}
	return nil
}

// unmap closes all Mappings.
func (c *Conn) unmap() {
	c.mu.Lock()
	maps := slices.Clone(c.maps) // The program may close its Mappings at the same time.
	c.mu.Unlock()
	for _, m := range maps {
		if m != nil {
			_ = m.Close()
		}
	}
}

// WriteAt writes p into memory that the peer has mapped by its Map, and returns when the lower layer has taken it.
// The peer is not told: write to the stream afterwards, and when that arrives the bytes are there. If the peer has
// mapped no memory for some of the bytes, n bytes before those are written, and the error wraps ErrNotMapped.
func (c *Conn) WriteAt(p []byte, offset int64) (n int, err error) {
	if !c.made() {
		return 0, c.opError("write", errNoConn)
	}
	n, err = c.writeAt(p, uint64(offset))
	return n, c.opError("write", err)
}

func (c *Conn) writeAt(p []byte, offset uint64) (n int, err error) {
	if err := c.enter(&c.wr); err != nil {
		return 0, err
	}
	defer c.wr.gate.leave()
	for n < len(p) && err == nil {
		var m int
		m, err = c.writeSomeAt(p[n:], offset+uint64(n))
		n += m
	}
	return n, err
}

// writeSomeAt writes as much of p as can be registered at once.
func (c *Conn) writeSomeAt(p []byte, offset uint64) (n int, err error) {
	mr, p, err := c.register(p)
	if err != nil {
		return 0, err
	}
	first := c.out.posted
	for n < len(p) && err == nil {
		var m int
		m, err = c.writePieceAt(p, n, mr, offset+uint64(n))
		n += m
	}
	if mr != nil {
		err = c.unregister(mr, first, err)
	}
	return n, err
}

// writePieceAt writes as much of p from n on as one map has room for.
func (c *Conn) writePieceAt(p []byte, n int, mr *iwarp.MR, offset uint64) (int, error) {
	if err := c.drain(maxPending - 1); err != nil {
		return 0, err
	}
	to, err := c.findMapped(offset, len(p)-n)
	if err != nil {
		return 0, err
	}
	m := int(to.Length)
	wr := iwarp.SendWR{Op: iwarp.OpWrite, Remote: remote(to.Place)}
	if mr == nil {
		wr.Inline = p[n : n+m]
	} else {
		sgl := [1]iwarp.SGE{mr.Slice(n, m)}
		wr.SGL = sgl[:]
	}
	c.out.posted++
	c.out.signaled = c.out.posted
	wr.ID = c.out.posted
	if err := c.qp.PostSend(&wr); err != nil {
		return 0, c.broken(err)
	}
	return m, nil
}

// findMapped returns where in the peer's memory the bytes at an offset are, limit at most.
func (c *Conn) findMapped(offset uint64, limit int) (to rsockets.Entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollWords()
	if c.closed {
		return to, errClosed
	}
	if err := c.unwritable(); err != nil {
		return to, err
	}
	to, found := c.ep.Find(offset, limit)
	if !found {
		return to, cmp.Or(c.fault, fmt.Errorf("%w: offset %d", ErrNotMapped, offset))
	}
	return to, nil
}
