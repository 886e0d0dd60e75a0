package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

const serveText = `Serves a folder, the current one by default, on https://localhost:8443 over HTTP/1.1, HTTP/2 and HTTP/3.

A folder is answered with its index.html, or else with a list of what is in it. GET and HEAD are answered,
with ranges, ETag and Last-Modified; nothing is ever written to the folder. A client that takes nothing for
a minute is cut off.

Not served, and not listed: names that begin with a dot, names with a backslash, symbolic links that lead
out of the folder or are absolute, devices, sockets and pipes. A link in the folder to a name that begins
with a dot is served, as somebody made it on purpose.

localhost means 127.0.0.1 and, where the machine has it, ::1, with the same port for TCP and UDP. --addr
:8443 serves all interfaces, and a port of 0 takes one that is free.

Without --cert it makes a certificate of its own for localhost, the machine's name and the host in --addr,
and keeps it, with its key, in serve.pem of the folder weir in the user's cache folder, for 90 days; it is
made anew when less than 30 are left, or when it lacks the host in --addr. Browsers warn of it, as nobody
vouches for it: what they show can be compared with the SHA-256 that is printed. curl takes it by --cacert,
Chromium by its SPKI hash in --ignore-certificate-errors-spki-list.

Requests are logged on stdout, a line each: time, client, protocol, method, path, status, bytes of the body,
duration; paths that are not plain are quoted. With --log json a line is {"time", "client", "proto",
"method", "path", "status", "bytes", "duration_ms"}. All else is on stderr.

SIGINT and SIGTERM stop it: requests in progress have --grace to complete; a second signal ends it at once.
The exit code is 0, or 1 if requests were cut off.`

const serveExample = `  weir serve
  weir serve ~/site --addr :8443
  weir serve --cert cert.pem --key key.pem --log json | jq 'select(.status >= 400) | .path'`

// serveConfig is what the flags say.
type serveConfig struct {
	dir       string
	address   address
	cert, key string // files; both or neither
	quiet     bool
	log       logFormat
	grace     time.Duration
	noHTTP3   bool
}

func newServe() *cobra.Command {
	cfg := serveConfig{
		dir:     ".",
		address: address{"localhost", 8443},
		log:     logText,
		grace:   10 * time.Second,
	}
	cmd := &cobra.Command{
		Use:     "serve [folder]",
		Short:   "Serve a folder over HTTP/1.1, HTTP/2 and HTTP/3",
		Long:    serveText,
		Example: serveExample,
		Args:    oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (cfg.cert == "") != (cfg.key == "") {
				return wrong("--cert and --key go together: give both, or neither")
			}
			if len(args) > 0 {
				cfg.dir = args[0]
			}
			return runServe(cmd.OutOrStdout(), cmd.ErrOrStderr(), cfg)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(addressValue{&cfg.address}, "addr", "where to listen, as host:port; :port is all interfaces")
	f.StringVar(&cfg.cert, "cert", "", "file with the certificate, and its chain, as PEM; one is made without")
	f.StringVar(&cfg.key, "key", "", "file with the key of --cert, as PEM")
	f.BoolVarP(&cfg.quiet, "quiet", "q", false, "do not log requests")
	f.Var(logValue{&cfg.log}, "log", "how requests are logged: text or json")
	f.Var(durationValue{&cfg.grace, 0, time.Hour}, "grace", "how long requests in progress may take after a signal, up to 1h")
	f.BoolVar(&cfg.noHTTP3, "no-http3", false, "serve HTTP/1.1 and HTTP/2 only, and open no UDP socket")
	return cmd
}

// oneFolder refuses more than one argument.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return wrong("%s takes one folder, but got %q", cmd.CommandPath(), args)
}

// runServe serves until a signal, then tells what was served.
func runServe(stdout, stderr io.Writer, cfg serveConfig) error {
	folder, err := openFolder(cfg.dir)
	if err != nil {
		return err
	}
	defer folder.close()
	cert, err := cfg.givenCertificate()
	if err != nil {
		return err
	}
	ctx, done := catchSignals() // not before: the certificate may be in a pipe that nobody writes
	defer done()
	sockets, err := listen(ctx, cfg.address, !cfg.noHTTP3)
	if err != nil {
		return err
	}
	defer sockets.close()
	if cert == nil { // not before: an address that cannot be had is no reason to make one anew
		if cert, err = cfg.ownCertificate(stderr); err != nil {
			return err
		}
	}

	var log *requestLog
	if !cfg.quiet {
		log = newRequestLog(stdout, cfg.log)
	}
	w := newWatcher(folder, log)
	fmt.Fprint(stderr, summary(cfg, folder, sockets, cert))
	err = serveAll(ctx, newServer(w, cert.pair, stderr), sockets, cfg.grace, w)
	if log != nil {
		err = errors.Join(err, log.close(logPatience))
	}
	fmt.Fprintln(stderr, w.text())
	return err
}

// cutOff is the error of a stop that requests did not complete in.
type cutOff struct {
	requests int64
	grace    time.Duration
}

func (e cutOff) Error() string {
	return fmt.Sprintf("%s in progress cut off, as the %s of --grace were over",
		several(uint64(e.requests), "request"), shortDuration(e.grace))
}
