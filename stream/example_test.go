package stream_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/goiwarp/iwarp/stream"
)

// A server that sends back what comes, and a client of it.
func Example() {
	ctx := context.Background()
	ln, err := stream.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()

	conn, err := stream.Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "by RDMA Writes, and back")
	if err := conn.CloseWrite(); err != nil {
		log.Fatal(err)
	}
	back, err := io.ReadAll(conn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", back)
	// Output: by RDMA Writes, and back
}

// Net/http takes a Listener and a Dialer as it takes those of package net.
func ExampleDialer_DialContext() {
	ln, err := stream.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		fmt.Fprintf(w, "hello, %s", strings.TrimPrefix(req.URL.Path, "/"))
	})}
	go server.Serve(ln)
	defer server.Close()

	client := http.Client{Transport: &http.Transport{DialContext: new(stream.Dialer).DialContext}}
	answer, err := client.Get("http://" + ln.Addr().String() + "/world")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	fmt.Printf("%s\n", body)
	// Output: hello, world
}

// The server has the client write into memory of its own, with no copy at either end.
func ExampleConn_Map() {
	ctx := context.Background()
	cfg := stream.Config{Maps: 1}
	lc := stream.ListenConfig{Acceptor: stream.Acceptor{Config: cfg}}
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer ln.Close()
	written := make(chan string)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			log.Fatal(err)
		}
		defer conn.Close()
		memory := make([]byte, 12)
		m, err := conn.(*stream.Conn).Map(memory, 0)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprint(conn, "!")                     // the memory is there
		_, _ = io.ReadFull(conn, make([]byte, 1)) // and what was written is
		_ = m.Close()
		written <- string(memory)
	}()

	conn, err := (&stream.Dialer{Config: cfg}).Dial(ctx, "tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.ReadFull(conn, make([]byte, 1))
	if _, err := conn.WriteAt([]byte("put in place"), 0); err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(conn, "!")
	fmt.Println(<-written)
	// Output: put in place
}
