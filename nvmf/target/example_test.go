package target_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/nvmf/target"
)

// A file as a disk for Linux: "nvme connect -t rdma -a ADDRESS -s 4420 -n nqn.2026-11.org.example:disk". At an
// interrupt, what is under way is answered and on disk before the program ends.
func ExampleTarget_Serve() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	file, err := target.OpenFile("disk.img", 512, false)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	t, err := target.New(target.Config{
		NQN:        "nqn.2026-11.org.example:disk",
		Namespaces: []target.Namespace{{Backend: file, Name: "disk"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := iwarp.Listen(ctx, "tcp", fmt.Sprint(":", target.DefaultPort))
	if err != nil {
		log.Fatal(err)
	}
	_ = t.Serve(ctx, ln) // until the interrupt
	_ = ln.Close()
	ending, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := t.Shutdown(ending); err != nil {
		log.Print(err)
	}
}
