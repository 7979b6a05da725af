package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping/message"
)

// An attendant is the server's end of one connection.
type attendant struct {
	*endpoint
	want []byte
}

// serve serves one ping. A client that disconnects has done so in order only
// before a ping, not within.
func (a *attendant) serve(ctx context.Context, ping int) error {
	source, err := a.receive(ctx)
	if err != nil {
		return err
	}
	err = a.pong(ctx, ping, source)
	if errors.Is(err, iwarp.ErrPeerClosed) {
		return errWithinPing
	}
	return err
}

var errWithinPing = errors.New("the client closed the connection in the middle of it")

func (a *attendant) pong(ctx context.Context, ping int, source message.Advert) error {
	a.report(Received(source))
	data, err := a.read(ctx, ping, source)
	if err != nil {
		return err
	}
	if err := a.advertise(message.Advert{}); err != nil { // go ahead
		return err
	}
	sink, err := a.receive(ctx)
	if err != nil {
		return err
	}
	a.report(Received(sink))
	if err := a.write(ctx, data, sink); err != nil {
		return err
	}
	return a.advertise(message.Advert{})
}

// read fetches the client's text.
func (a *attendant) read(ctx context.Context, ping int, source message.Advert) ([]byte, error) {
	if source.Length == 0 || source.Length > MaxSize {
		return nil, fmt.Errorf("rping: the client's buffer has %d bytes (valid range is 1 to %d)",
			source.Length, MaxSize)
	}
	n := int(source.Length)
	if err := a.perform(ctx, iwarp.OpRead, n, remote(source)); err != nil {
		return nil, err
	}
	data := a.data.Bytes()[:n]
	a.report(Pinged{Server: true, Text: text(data)})
	if a.Validate {
		fill(a.want[:n], ping)
		return data, compare(ping, data, a.want[:n])
	}
	return data, nil
}

// write echoes the text, with the byte of zero at its end.
func (a *attendant) write(ctx context.Context, data []byte, sink message.Advert) error {
	n := len(data)
	if end := bytes.IndexByte(data, 0); end >= 0 {
		n = end + 1
	}
	if n > int(sink.Length) {
		return fmt.Errorf("rping: the client's sink has the length %d, its text %d", sink.Length, n)
	}
	return a.perform(ctx, iwarp.OpWrite, n, remote(sink))
}
