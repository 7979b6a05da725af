package stream

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/ddp"
	"github.com/goiwarp/iwarp/stream/rsockets"
)

// A Mapping is memory of this end's into which the peer may write, by WriteAt or rdma-core's riowrite.
type Mapping struct {
	c  *Conn
	mr *iwarp.MR
	at int // its entry
}

// Map lets the peer write into buf, whose first octet has the given offset. The peer has to have room for maps:
// Config.Maps, or RDMA_IOMAPSIZE of rdma-core's. The peer knows of the Mapping once it has read what was written to the
// stream after Map returned; and what the peer has written there is sure to be there once this end has read what the
// peer wrote to the stream afterwards. Of several Mappings with one offset the last, be it closed, is what the peer writes to. Until Close of the
// Mapping, or of the Conn, buf is the peer's. The error wraps
// ErrNoMaps where there is no room; a peer of rdma-core's takes no more than a quarter of its credits in all.
func (c *Conn) Map(buf []byte, offset uint64) (*Mapping, error) {
	m, err := c.mapIn(buf, offset)
	return m, c.opError("map", err)
}

func (c *Conn) mapIn(buf []byte, offset uint64) (*Mapping, error) {
	if n := uint64(len(buf)); n == 0 || n > 1<<32-1 || ddp.Wraps(offset, n) {
		return nil, fmt.Errorf("%w: a map of length %d at offset %d", iwarp.ErrInvalid, len(buf), offset)
	}
	if err := c.enter(&c.wr, c.writing); err != nil {
		return nil, err
	}
	defer c.writing.leave()
	if err := c.drain(maxUnsent - 1); err != nil { // a word that tells of it is a piece like others
		return nil, err
	}
	mr, err := c.pd.RegisterOptions(buf, iwarp.MROptions{Access: iwarp.RemoteWrite, QP: c.qp})
	if err != nil {
		return nil, err
	}
	m := &Mapping{c: c, mr: mr}
	if err := c.tellMap(m, offset); err != nil {
		_ = mr.Deregister()
		return nil, err
	}
	return m, nil
}

// hasMapRoom reports whether a Map need not wait.
func hasMapRoom(c *Conn) bool { return c.ep.MapRoom() != rsockets.MapWaits || hasEnded(c) }

func hasEnded(c *Conn) bool { return c.unwritable() != nil }

// tellMap writes the mapping into a free entry of the peer's table, and tells it.
func (c *Conn) tellMap(m *Mapping, offset uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.at = slices.Index(c.maps, nil); m.at < 0 {
		return ErrNoMaps
	}
	if err := c.awaitUnlocking(&c.wr, hasMapRoom); err != nil {
		return err
	}
	if err := c.unwritable(); err != nil {
		return err
	}
	if !c.ep.TellMap() {
		return ErrNoMaps
	}
	peer := c.ep.Peer()
	entry := rsockets.Map{Offset: offset, Entry: rsockets.Entry{Place: place(m.mr.Remote(0)), Length: uint32(m.mr.Len())}}
	wrs := [2]iwarp.SendWR{
		{Op: iwarp.OpWrite, Inline: entry.Append(nil, peer.Big), Remote: remote(peer.MapSlot(m.at)), Unsignaled: true},
		{ID: c.out.posted + 1, Op: iwarp.OpSend, Inline: rsockets.NewWord(rsockets.OpMap, uint32(m.at)).Append(c.word[:0], peer.Big)},
	}
	if _, err := c.qp.PostSends(wrs[:]); err != nil {
		return c.whyBroken(err)
	}
	c.out.posted++
	c.out.asked = c.out.posted
	c.maps[m.at] = m
	return nil
}

// ReadAt copies what the peer has written, from an octet of buf on. While the peer may write there, it is not safe to
// look at buf in any other way: this is iwarp.MR.ReadAt. So a program can wait for an octet to change.
func (m *Mapping) ReadAt(p []byte, offset int64) (n int, err error) { return m.mr.ReadAt(p, offset) }

// Close takes the memory back. The peer is not told: if it writes there afterwards, the connection ends. Closing again is no error.
func (m *Mapping) Close() error {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if m.c.maps[m.at] == m {
		m.c.maps[m.at] = nil
		_ = m.mr.Deregister()
	}
	return nil
}

// unmap takes all memory back.
func (c *Conn) unmap() {
	c.mu.Lock()
	maps := slices.Clone(c.maps) // others may close theirs meanwhile
	c.mu.Unlock()
	for _, m := range maps {
		if m != nil {
			_ = m.Close()
		}
	}
}

// WriteAt writes p into memory that the peer has mapped there by its Map, and returns when what is below has taken it. The peer is not
// told: write something to the stream afterwards, and when that arrives the octets are there. The error wraps ErrNotMapped where there
// is no such memory; n octets are written then.
func (c *Conn) WriteAt(p []byte, offset int64) (n int, err error) {
	n, err = c.writeAt(p, uint64(offset))
	return n, c.opError("write", err)
}

func (c *Conn) writeAt(p []byte, offset uint64) (n int, err error) {
	if err := c.enter(&c.wr, c.writing); err != nil {
		return 0, err
	}
	defer c.writing.leave()
	first := c.out.posted
	mr, err := c.pd.Register(p, 0)
	if err != nil {
		return 0, err
	}
	for n < len(p) && err == nil {
		var m int
		m, err = c.pieceAt(mr, n, offset+uint64(n))
		n += m
	}
	return n, c.finish(mr, first, err)
}

// pieceAt writes as much as one map has room for.
func (c *Conn) pieceAt(mr *iwarp.MR, n int, offset uint64) (int, error) {
	if err := c.drain(maxUnsent - 1); err != nil {
		return 0, err
	}
	to, err := c.mapped(offset, mr.Len()-n)
	if err != nil {
		return 0, err
	}
	m := int(to.Length)
	sgl := [1]iwarp.SGE{mr.Slice(n, m)}
	c.out.posted++
	c.out.asked = c.out.posted
	if err := c.qp.PostSend(&iwarp.SendWR{ID: c.out.posted, Op: iwarp.OpWrite, SGL: sgl[:], Remote: remote(to.Place)}); err != nil {
		return 0, c.broken(err)
	}
	return m, nil
}

// mapped finds memory that the peer has mapped.
func (c *Conn) mapped(offset uint64, most int) (to rsockets.Entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	if c.closed {
		return to, errClosed
	}
	if err := c.unwritable(); err != nil {
		return to, err
	}
	to, found := c.ep.Find(offset, most)
	if !found {
		return to, cmp.Or(c.fault, fmt.Errorf("%w: offset %d", ErrNotMapped, offset))
	}
	return to, nil
}
