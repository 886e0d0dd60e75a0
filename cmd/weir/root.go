package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootText = `weir is a network event loop for Go that no peer can starve.

What a socket may do at a time is bounded by measured time: while anything else waits, no socket holds the
loop longer than its share plus one callback, and a socket that is alone is not slowed. This command shows
it on your machine, tells what the machine can do, and serves a folder by it; the library is
github.com/weirnet/weir.`

const rootExample = `  weir demo                   a flood against a timer, under each bound, in ten seconds
  weir demo --net tcp         with a connection
  weir demo --handler 200us   with a faster handler
  weir demo --bound share     with one bound only
  weir doctor                 what weir can and cannot use here
  weir serve                  this folder on https://localhost:8443, over HTTP/1.1, 2 and 3`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "A network event loop for Go that no peer can starve",
		Long:          rootText,
		Example:       rootExample,
		Version:       version(),
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(newDemo(), newDoctor(), newServe(), newFlood(), newVersion())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			strictCompletion(c)
		}
	}
	return root
}

// strictCompletion has cobra's own command refuse unknown words as the others do.
func strictCompletion(c *cobra.Command) {
	c.Args = knownCommand
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	for _, shell := range c.Commands() {
		shell.Args = noArgs
	}
}

// knownCommand hears of words that are no subcommand of cmd.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknown(cmd, args[0])
}

// unknown is the error for a word that is no subcommand of cmd.
func unknown(cmd *cobra.Command, word string) error {
	return wrong("unknown command %q of %s; weir help lists the commands", word, cmd.CommandPath())
}

// noArgs refuses arguments that are no flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return wrong("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
}

// flagError says which flag, which value, and what is allowed.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return wrongInput{err}
	}
	reason := invalid.Unwrap()
	if invalid.GetFlag().Value.Type() == "bool" {
		reason = errors.New("true and false are allowed")
	}
	return wrong("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), reason)
}
