package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/goiwarp/iwarp/internal/programs/settings"
	"github.com/goiwarp/iwarp/internal/wording"
	"github.com/goiwarp/iwarp/programs"
)

// runCmd runs an RDMA program (libibverbs, librdmacm).
type runCmd struct {
	Build   bool     `help:"Build the library anew, also if it is there. Without a program that is all."`
	Status  bool     `help:"Print what is there, and what is missing."`
	As      *string  `help:"What the device passes for: iwarp, or roce for programs that connect Queue Pairs by themselves. By default what the program is known to need." enum:"iwarp,roce"`
	Program []string `arg:"" optional:"" passthrough:"partial" placeholder:"PROGRAM" help:"The program, and its arguments."`
}

// Help describes what is run, and how.
func (runCmd) Help() string {
	return "Runs a program that was written for libibverbs and librdmacm, unmodified, with a device iwarp0 of ours beside those that are there: " +
		"no hardware, no kernel module, no root. The program takes the place of this one, so that signals and the exit status are its own.\n\n" +
		"The program loads a library. Packages and Linux archives put it into ../lib/iwarp beside this command. " +
		"Otherwise the first run builds it. That takes Go, a C compiler, and the headers of libibverbs and librdmacm. " +
		"It is kept in the user's cache directory, or where IWARP_LIBRARY says, and built anew when the sources have changed.\n\n" +
		"Most programs connect by librdmacm. Others exchange the numbers of their Queue Pairs by themselves, and demand InfiniBand or RoCE: both ends run with --as roce. " +
		"perftest without -R, ibv_rc_pingpong, UCX and mpirun get that by default.\n\n" +
		"Settings are in the environment, both ends' own:\n\n" + settings.Help
}

// Run does not return when the program begins.
func (c *runCmd) Run(ctx context.Context, std streams) error {
	if len(c.Program) > 0 && c.Program[0] == "--" {
		c.Program = c.Program[1:]
	}
	if len(c.Program) == 0 && !c.Build && !c.Status {
		return usage("run: name a program, such as iwarp run rping -s; or give --build or --status")
	}
	restore := programs.Narrow()
	defer restore()
	version := built().Main.Version
	library, err := programs.LibraryOf(version)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if c.Status {
		return c.status(ctx, std, library, version)
	}
	if err := checkSettings(); err != nil && len(c.Program) > 0 {
		return usage("run: %w", err)
	}
	if err := c.findProgram(); err != nil {
		return err
	}
	if _, err := library.Trust(); err != nil { // and nothing is built there
		return fmt.Errorf("run: %w", err)
	}
	if err := c.ready(ctx, std, library, version); err != nil || len(c.Program) == 0 {
		return err
	}
	notice, err := library.Trust()
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if notice != "" {
		fmt.Fprintf(std.err, "iwarp: run: %s\n", notice)
	}
	if why := library.Obstacle(c.Program[0]); why != "" {
		fmt.Fprintf(std.err, "iwarp: run: %s\n", why)
	}
	guise := programs.Guise("")
	if c.As != nil {
		guise = programs.Guise(*c.As)
	}
	restore() // the program has its own
	return library.Exec(c.Program, guise)
}

// findProgram refuses a program that is not there before a library is built for it.
func (c *runCmd) findProgram() error {
	if len(c.Program) == 0 {
		return nil
	}
	if _, err := exec.LookPath(c.Program[0]); err != nil {
		return fmt.Errorf("run: %w: give its path, or install the package that has it", err)
	}
	return nil
}

// checkSettings refuses wrong settings here: the library could only print a line among the program's own output.
func checkSettings() error {
	s, err := settings.From(os.LookupEnv)
	if err != nil {
		return err
	}
	return s.Capture.Check()
}

// ready builds the library, if that is wanted, or it is not there, or is that of other sources than are there now.
func (c *runCmd) ready(ctx context.Context, std streams, library programs.Library, version string) error {
	state := library.State(ctx, version)
	if err := cmp.Or(library.Check(), ctx.Err()); err != nil {
		return err
	}
	why := ""
	switch {
	case c.Build, !state.Built:
	case state.Stale():
		why = ", which is that of other sources, anew"
	case state.Unknown():
		tellOnce(std, library, state)
		return nil
	default:
		return nil
	}
	plan, err := library.Plan(ctx, version)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	fmt.Fprintf(std.err, "building the library for programs in %s%s\n", library.Dir, why)
	if err := plan.Build(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// tellOnce says that a library cannot be compared with sources, unless that was said of the same one before: both ends
// of a program would say it, each time. What was said is noted beside the library, if that can be written.
func tellOnce(std streams, library programs.Library, state programs.State) {
	notice := fmt.Sprintf("iwarp: run: using the library in %s, which cannot be compared with this version: %s\n",
		library.Dir, unknown(state))
	told, note := filepath.Join(library.Dir, "told"), state.From+" "+notice
	if before, _ := os.ReadFile(told); string(before) == note {
		return
	}
	fmt.Fprint(std.err, notice)
	if f, err := os.CreateTemp(library.Dir, "told-"); err == nil {
		_, _ = f.WriteString(note)
		_ = f.Close()
		_ = os.Rename(f.Name(), told)
	}
}

// unknown says why a library cannot be compared with sources.
func unknown(s programs.State) string {
	if s.Failed != nil {
		return "the sources here cannot be looked at: " + s.Failed.Error()
	}
	return "there are no sources here, or no Go"
}

// errNotReady is that of a status with something missing.
var errNotReady = errors.New("run: programs cannot be run: the library is not built, and something is missing to build it")

func (c *runCmd) status(ctx context.Context, std streams, library programs.Library, version string) error {
	state := library.State(ctx, version)
	_, distrust := library.Trust()
	place := cmp.Or(library.Check(), distrust)
	rows := [][]string{{"library", wording.If(place != nil, "unusable",
		wording.If(state.Built, wording.If(state.Stale(), "stale", "built"), "not built")), library.Dir}}
	if state.Built {
		rows = append(rows, []string{"built from", cmp.Or(shortDigest(state.From), "unknown"), c.compared(state)})
	}
	complete := state.Failed == nil
	if !state.Built && !complete {
		rows = append(rows, []string{"sources", "unusable", state.Failed.Error()})
	}
	var needs []programs.Need
	if !state.Shipped {
		needs = programs.Needs(ctx, version)
	}
	for _, n := range needs {
		if n.Found == "" {
			complete = false
			rows = append(rows, []string{n.What, "missing", n.How})
		} else {
			rows = append(rows, []string{n.What, "found", n.Found})
		}
	}
	if err := printColumns(std.out, "", rows); err != nil {
		return err
	}
	if place != nil {
		return &ending{place, statusFindings}
	}
	if !state.Built && !complete {
		return &ending{errNotReady, statusFindings}
	}
	return nil
}

// shortDigest is as much of a digest as tells it from others.
func shortDigest(digest string) string { return digest[:min(len(digest), 12)] }

// compared says what a library was built from, beside the digest.
func (c *runCmd) compared(s programs.State) string {
	switch {
	case s.Shipped:
		return "it came with this command"
	case s.Stale():
		return "the sources are " + shortDigest(s.Now)
	case s.Unknown():
		if s.Failed != nil {
			return unknown(s)
		}
		return "no sources here to compare, or no Go"
	}
	return "these sources"
}
