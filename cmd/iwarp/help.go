package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/wording"
)

// helpColumns is the width of what is added to kong's help, and helpMost the most that kong's has: wider lines are hard
// to read.
const (
	helpColumns = 80
	helpMost    = 96
)

// printHelp prints what kong has to say of a command, or the overview of all, and the exit statuses.
func printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := printOwnHelp(o, c); err != nil {
		return err
	}
	fmt.Fprintln(c.Stdout)
	for line := range wording.Lines(exitStatuses, helpColumns) {
		fmt.Fprintln(c.Stdout, line)
	}
	return nil
}

// printOwnHelp prints what is not the same for all.
func printOwnHelp(o kong.HelpOptions, c *kong.Context) error {
	command := c.Selected()
	if command == nil {
		printOverview(c.Stdout, c.Model)
		return nil
	}
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	if isService(command.Name) {
		fmt.Fprintln(c.Stdout)
		for line := range wording.Lines(environmentText(command.Name), helpColumns) {
			fmt.Fprintln(c.Stdout, line)
		}
	}
	printExamples(c.Stdout, command.Name)
	return nil
}

// printOverview prints a line for each command, by group.
func printOverview(w io.Writer, app *kong.Application) {
	fmt.Fprintf(w, "iwarp: %s\n", whatItIs)
	group := ""
	for _, command := range app.Children {
		if command.Group.Title != group {
			group = command.Group.Title
			fmt.Fprintf(w, "\n%s\n", group)
		}
		fmt.Fprintf(w, "  %-11s %s\n", command.Name, strings.TrimSuffix(command.Help, "."))
	}
	fmt.Fprintln(w, "\niwarp COMMAND --help   options and examples       iwarp --version   the version")
}

// helpCmd is --help for those who look for a command of that name.
type helpCmd struct {
	Command []string `arg:"" optional:"" complete:"commands" help:"The command to explain: one."`
}

// Run prints the help, which leaves by kong's exit.
func (c helpCmd) Run(parser *kong.Kong) error {
	if len(c.Command) > 1 {
		return usage("help: one command at a time: iwarp help %s", c.Command[0])
	}
	if len(c.Command) == 1 && !slices.Contains(commands(parser), c.Command[0]) {
		return noCommand(parser, c.Command[0])
	}
	_, err := parser.Parse(append(c.Command, "--help"))
	return unparsed(err)
}

// versionFlag is the command version for those who look for a flag of that name.
type versionFlag bool

// BeforeReset prints the version instead of anything else that may be asked for.
func (versionFlag) BeforeReset(app *kong.Kong, std streams) error {
	if err := (versionCmd{}).Run(std); err != nil {
		return err
	}
	app.Exit(statusFine)
	return nil
}
