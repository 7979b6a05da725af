package main

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp/internal/wording"
)

// helpColumns is the width of what is added to kong's help.
const helpColumns = 80

// printHelp prints what kong has to say. Of a command it adds the exit statuses, which are
// in the description of all of them.
func printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	if c.Selected() == nil {
		return nil
	}
	fmt.Fprintln(c.Stdout)
	for line := range wording.Lines(exitStatuses, helpColumns) {
		fmt.Fprintln(c.Stdout, line)
	}
	return nil
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
