package host_test

import (
	"context"
	"fmt"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/nvmf/host"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// A disk of our own target, used as an io.WriterAt and io.ReaderAt. Offsets and lengths of any size will do for reads; writes are of whole blocks.
func Example() {
	ctx := context.Background()
	disk, err := target.NewMemory(1<<20, 512)
	if err != nil {
		panic(err)
	}
	served, err := target.New(target.Config{NQN: nqn, Namespaces: []target.Namespace{{Backend: disk, Name: "disk"}}})
	if err != nil {
		panic(err)
	}
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer ln.Close()
	go served.Serve(ctx, ln)

	controller, err := (&host.Dialer{}).Dial(ctx, "tcp", ln.Addr().String(), nqn)
	if err != nil {
		panic(err)
	}
	namespace, err := controller.Namespace(ctx, 1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d bytes in blocks of %d\n", namespace.Size(), namespace.BlockSize())

	block := make([]byte, namespace.BlockSize())
	copy(block, "hello, disk")
	if _, err := namespace.WriteAt(block, 4096); err != nil {
		panic(err)
	}
	if err := namespace.Flush(ctx); err != nil { // it is durable when this has returned
		panic(err)
	}
	word := make([]byte, 4)
	if _, err := namespace.ReadAt(word, 4096+7); err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", word)
	if err := controller.Close(); err != nil {
		panic(err)
	}
	if err := served.Shutdown(ctx); err != nil {
		panic(err)
	}
	// Output:
	// 1048576 bytes in blocks of 512
	// disk
}
