//go:build linux && (amd64 || arm64)

package verbs

import "testing"

// requested is a listener with a request that was not fetched, and another channel.
func requested(t *testing.T) (c, s *program, listener, other Handle, fd int) {
	t.Helper()
	s, c = newProgram(t), newProgram(t)
	other, fd = s.other()
	listener, at := s.listen(1)
	request := c.resolve(2, at)
	must(t, c.d.Connect(request, c.queue().qp, ConnParam{}))
	wait(t, s.events)
	return c, s, listener, other, fd
}

// TestMigrateToDestroyed rejects a request whose listener is on its way to a channel that is destroyed meanwhile.
func TestMigrateToDestroyed(t *testing.T) {
	c, s, listener, other, _ := requested(t)
	id, events := s.d.ids.get(listener), s.d.cmChannels.get(s.channel).events
	migrated := make(chan struct{})
	// and that who brought the request has let go of the lock
	want(t, "that it listens", id.advance(stageListening, stageListening), true)
	events.mu.Lock()
	go func() {
		defer close(migrated)
		_ = s.d.MigrateID(listener, other)
	}()
	until(t, "the migration to have begun", func() bool {
		free := id.mu.TryLock()
		if free {
			id.mu.Unlock()
		}
		return !free
	})
	must(t, s.d.CloseCMChannel(other))
	events.mu.Unlock()
	<-migrated
	want(t, "whose", c.event(Rejected).Token, 2)
	must(t, s.d.DestroyID(listener))
}

// TestMigrateRequest has the events of a request's ID come where the request came, though it came elsewhere before.
func TestMigrateRequest(t *testing.T) {
	c, s, listener, other, fd := requested(t)
	must(t, s.d.MigrateID(listener, other))
	e, errno := s.d.NextCM(other)
	must(t, errno)
	must(t, s.d.NameID(e.Child, 3))
	must(t, s.d.Accept(e.Child, s.queue().qp, ConnParam{}))
	c.event(Established)
	wait(t, fd)
	e, errno = s.d.NextCM(other)
	must(t, errno)
	want(t, "event", e.Type, Established)
	want(t, "whose", e.Token, 3)
}
