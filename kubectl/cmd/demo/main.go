// Command demo is what the demo image runs: a small web server that says which
// pod it is in, and a few subcommands that make a container sleep, print or
// fail without a shell.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage:
  demo [serve [ADDRESS]]   answer HTTP on ADDRESS (default :8080), log each request
  demo sleep DURATION      wait (for ever with "infinity"), end on SIGTERM
  demo get URL             print what HTTP answers there
  demo echo WORD...        print the words
  demo env                 print the environment
  demo cat FILE...         print the files
  demo tick DURATION       print a numbered line every DURATION
  demo exit CODE           end with that code
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	verb := "serve"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "serve":
		err = serve(ctx, args)
	case "sleep":
		err = sleep(ctx, args)
	case "get":
		err = get(ctx, args)
	case "echo":
		fmt.Println(strings.Join(args, " "))
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "cat":
		err = cat(args)
	case "tick":
		err = tick(ctx, args)
	case "exit":
		if len(args) == 1 {
			if code, err = strconv.Atoi(args[0]); err == nil {
				return code, nil
			}
		}
		err = errors.New("exit takes one number")
	default:
		fmt.Fprint(os.Stderr, usage)
		return 2, nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

func serve(ctx context.Context, args []string) error {
	address := ":8080"
	if len(args) > 0 {
		address = args[0]
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Printf("%s %s from %s\n", r.Method, r.URL.Path, r.RemoteAddr)
			fmt.Fprintf(w, "hello from pod %s\n", host)
		}),
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("pod %s: listening on %s\n", host, address)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	fmt.Println("asked to stop, bye")
	return nil
}

// maxResponse is how much of an answer get prints.
const maxResponse = 1 << 20

func get(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("get takes one URL")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[0], nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, io.LimitReader(answer.Body, maxResponse))
	return err
}

func duration(args []string) (time.Duration, error) {
	if len(args) != 1 {
		return 0, errors.New("one duration is needed, such as 10s")
	}
	return time.ParseDuration(args[0])
}

func sleep(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == "infinity" {
		<-ctx.Done()
		return nil
	}
	d, err := duration(args)
	if err != nil {
		return err
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return nil
}

func cat(files []string) error {
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func tick(ctx context.Context, args []string) error {
	d, err := duration(args)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for n := 1; ; n++ {
		fmt.Println("tick", n)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
