package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sync/errgroup"
)

// Serve answers the registry protocol on address until ctx ends. It first builds
// and stores the project's own images from the binaries in binDir; root can push
// more. Blobs are kept in dir, manifests in memory: after a restart the
// project's images are there again, pushed ones must be pushed again.
func Serve(ctx context.Context, address, binDir, dir string) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(host).IsLoopback() {
		return fmt.Errorf("registry: %q is not a loopback address, and the registry has no authentication", address)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("registry: listen on %s: %w", address, err)
	}
	server := &http.Server{
		Handler: ownersWrite(registry.New(
			registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)),
			registry.Logger(log.New(io.Discard, "", 0)),
		)),
		ConnContext:       withConnection,
		ReadHeaderTimeout: 30 * time.Second,
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("registry: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error {
		err := pushAll(ctx, listener.Addr().String(), binDir)
		if ctx.Err() != nil { // the end is no failure, nor is it a push that the other failure cut off
			return nil
		}
		return err
	})
	return group.Wait()
}

// pushAll puts the project's images into the registry at address.
func pushAll(ctx context.Context, address, binDir string) error {
	for _, spec := range Specs {
		image, err := build(spec, binDir)
		if err != nil {
			return err
		}
		if err := push(ctx, "http://"+address+"/v2/"+spec.Name, image); err != nil {
			return fmt.Errorf("image %s: push: %w", spec.Name, err)
		}
	}
	return nil
}

// Ready reports whether the registry at address has all of the project's
// images; the error says what is missing.
func Ready(ctx context.Context, address string) error {
	for _, spec := range Specs {
		url := "http://" + address + "/v2/" + spec.Name + "/manifests/latest"
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("registry: image %s: %s", spec.Name, resp.Status)
		}
	}
	return nil
}

// WriteAll builds images and writes each as an archive that container engines
// load, NAME.tar in dir.
func WriteAll(specs []Spec, binDir, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write images: %w", err)
	}
	for _, spec := range specs {
		image, err := build(spec, binDir)
		if err != nil {
			return err
		}
		if err := writeArchive(image, spec.Name, filepath.Join(dir, spec.Name+".tar")); err != nil {
			return err
		}
	}
	return nil
}
