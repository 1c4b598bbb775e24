// Command healthcheck asks an HTTP endpoint whether a program is well, and says so
// by its exit code: what a container engine can call in an image that has no
// shell.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

func main() {
	ca := flag.String("ca", "", "authority of the server's certificate")
	cert := flag.String("cert", "", "client certificate to show")
	key := flag.String("key", "", "key of --cert")
	timeout := flag.Duration("timeout", 5*time.Second, "how long to wait for the answer")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: healthcheck [--ca FILE] [--cert FILE --key FILE] URL")
		os.Exit(2)
	}
	config, err := tlsConfig(*ca, *cert, *key)
	if err == nil {
		err = checkEndpoint(flag.Arg(0), config, *timeout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "healthcheck:", err)
		os.Exit(1)
	}
}

func tlsConfig(ca, cert, key string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		authority, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New(ca + ": no PEM certificate in it")
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

const maxResponse = 1000

func checkEndpoint(url string, config *tls.Config, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config}}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxResponse))
		return fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	return nil
}
