// Command web is a web server and a client of it, by net/http, whose connections are RDMA: package stream has a net.Listener
// for the one and a DialContext for the other, and nothing else of the program knows of it.
//
//	web serve :7471 DIRECTORY
//	web get http://HOST:7471/FILE
//
// The other end can also be any program of rsockets: docs/stream.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/goiwarp/iwarp/stream"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 3 && args[0] == "serve":
		ln, err := stream.Listen(ctx, "tcp", args[1])
		if err != nil {
			return err
		}
		log.Printf("serving %s on %v", args[2], ln.Addr())
		return serve(ctx, ln, args[2])
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1], os.Stdout)
	}
	return errors.New("usage: web serve ADDR DIRECTORY, or web get URL")
}

// serve serves the files of a directory until the context ends. Answers that have begun then are given 10 s to end.
func serve(ctx context.Context, ln *stream.Listener, dir string) error {
	root, err := os.OpenRoot(dir) // no name leads out of it
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer root.Close()
	server := http.Server{Handler: http.FileServerFS(root.FS()), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(last)
}

// get writes what is at a URL.
func get(ctx context.Context, url string, to io.Writer) error {
	transport := &http.Transport{DialContext: new(stream.Dialer).DialContext}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("web: %s: %s", url, answer.Status)
	}
	_, err = io.Copy(to, answer.Body)
	return err
}
