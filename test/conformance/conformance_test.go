package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kctl/test/harness"
)

// The behaviours mostly wait, for probes, back-offs and grace periods, so more
// of them run at once than there are cores.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// behaviour is one of the things that a conformant node does.
type behaviour struct {
	name string // as upstream's test is called
	test func(*world)
}

// One cluster serves all behaviours; each has a namespace of its own.
func TestNode(t *testing.T) {
	c := harness.Start(t, harness.Options{})
	images := images{
		shell: c.Shell(),
		entrypoint: c.ShellAs("entrypoint", v1.Config{
			Entrypoint: []string{"/bin/echo", "image's entrypoint"},
			Cmd:        []string{"image's arguments"},
			Env:        []string{"PATH=/bin"},
		}),
		grpc: c.Program("grpcserver", buildGRPCServer(t)),
	}
	t.Run("node", func(t *testing.T) {
		for _, group := range [][]behaviour{
			configMaps, secrets, hooks, terminations, commands, downward, ephemerals, inits, logsAndFiles, leases,
			generations, pods, resizes, streams, probes, security, sysctls, expansions, classes, templates, devices,
		} {
			for _, b := range group {
				t.Run(b.name, func(t *testing.T) {
					t.Parallel()
					b.test(newWorld(t, c.In(t), images))
				})
			}
		}
	})
	// These change what all pods of the node see.
	for _, b := range nodes {
		t.Run("node/"+b.name, func(t *testing.T) { b.test(newWorld(t, c.In(t), images)) })
	}
}

// buildGRPCServer builds the server for the gRPC probes.
func buildGRPCServer(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "grpcserver")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./conformance/grpcserver")
	cmd.Dir = filepath.Join(harness.Root(), "test")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build grpcserver: %v\n%s", err, text)
	}
	return out
}
