package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/goiwarp/iwarp/internal/serve"
	"github.com/goiwarp/iwarp/internal/transfer"
	"github.com/goiwarp/iwarp/internal/wording"
)

// served are the files that are served; nil: none.
type served struct{ *transfer.Server }

// files opens the directory, if one is to be served.
func (c *serveCmd) files(log *slog.Logger) (*served, error) {
	if c.Dir == "" {
		return nil, nil
	}
	s, err := transfer.NewServer(transfer.ServerConfig{Dir: c.Dir, Writable: c.Writable, Silence: c.Idle,
		Memory: int64(c.Memory), Logger: log})
	if err != nil {
		return nil, fmt.Errorf("serve: --dir: %w%s",
			err, wording.If(errors.Is(err, fs.ErrNotExist), ": make the directory first", ""))
	}
	return &served{s}, nil
}

// services is the one for files. If there are none it tells its clients so.
func (s *served) services() []serve.Service {
	if s == nil {
		return []serve.Service{{Name: "cp", Knows: transfer.Knows,
			Off: "no files are served here: it is to run with --dir"}}
	}
	return []serve.Service{{Name: "cp", Wants: "those of iwarp cp", Knows: transfer.Knows, Serve: s.Serve}}
}

func (s *served) close() {
	if s != nil {
		_ = s.Close()
	}
}
