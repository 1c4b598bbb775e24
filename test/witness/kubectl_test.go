package witness_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/test/harness"
)

// user is a kubectl and a namespace to work in.
type user struct {
	*testing.T
	c               *harness.Cluster
	path, namespace string
	minor           int // 20 is kubectl 1.20
}

// users has one user for each kubectl at hand: 1.20, which `make test-deps`
// unpacks, and the machine's, if it is another.
func users(t *testing.T, c *harness.Cluster) []user {
	t.Helper()
	oldest := filepath.Join(harness.Root(), "build/kubernetes-client/usr/bin/kubectl")
	if _, err := os.Stat(oldest); err != nil {
		t.Fatalf("the tests need kubectl 1.20 (make test-deps): %v", err)
	}
	found := []user{{T: t, c: c, path: oldest}}
	if path, err := exec.LookPath("kubectl"); err == nil {
		found = append(found, user{T: t, c: c, path: path})
	}
	byMinor := map[int]user{}
	for _, u := range found {
		var version struct {
			ClientVersion struct{ Minor string }
		}
		if err := json.Unmarshal([]byte(u.run("version", "--client", "-o", "json")), &version); err != nil {
			t.Fatal(err)
		}
		minor, err := strconv.Atoi(strings.TrimRight(version.ClientVersion.Minor, "+"))
		if err != nil {
			t.Fatal(err)
		}
		u.minor, u.namespace = minor, "kubectl-1-"+strconv.Itoa(minor)
		byMinor[minor] = u
	}
	if len(byMinor) == 1 {
		t.Logf("only one kubectl is asked: there is none on the PATH but 1.%d", found[0].minor)
	}
	var out []user
	for _, u := range byMinor {
		out = append(out, u)
	}
	return out
}

// TestKubectl goes through kubectl's verbs, with the oldest and the newest
// kubectl at hand, side by side.
func TestKubectl(t *testing.T) {
	t.Parallel()
	c := harness.Start(t, harness.Options{})
	shell := c.Shell()
	for _, u := range users(t, c) {
		t.Run("1."+strconv.Itoa(u.minor), func(t *testing.T) {
			t.Parallel()
			u := u.in(t)
			u.run("create", "namespace", u.namespace)
			for _, part := range []struct {
				name string
				do   func(u user, shell string)
			}{
				{"server", aboutTheServer}, {"objects", objects}, {"printing", printing}, {"patching", patching},
				{"applying", applying}, {"editing", editing}, {"watching", watching}, {"rights", rights},
				{"workloads", workloads}, {"definitions", definitions}, {"mistakes", mistakes},
				{"pods", pods}, {"streams", streams}, {"forwarding", forwarding}, {"debugging", debugging},
			} {
				t.Run(part.name, func(t *testing.T) { part.do(u.in(t), shell) })
			}
		})
	}
}

func (u user) in(t *testing.T) user {
	u.T, u.c = t, u.c.In(t)
	return u
}

// command is a kubectl command line in the user's namespace, after the words in
// before: "env", "A=b".
func (u user) command(before []string, args []string) (string, []string) {
	line := append(append([]string{}, before...), u.path)
	if u.namespace != "" {
		line = append(line, "--namespace="+u.namespace)
	}
	line = append(line, args...)
	return line[0], line[1:]
}

// speaks starts a kubectl that runs until stop is called, and returns its
// output line by line.
func (u user) speaks(args ...string) (lines *bufio.Scanner, stop func()) {
	u.Helper()
	name, line := u.command(nil, args)
	cmd := exec.CommandContext(u.Context(), name, line...)
	cmd.Env = u.c.Env()
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.Fatal(err)
	}
	return bufio.NewScanner(out), func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func (u user) try(input string, before []string, args ...string) harness.Result {
	u.Helper()
	name, args := u.command(before, args)
	return u.c.Run(input, name, args...)
}

// run runs kubectl, which must succeed, and returns its standard output.
func (u user) run(args ...string) string {
	u.Helper()
	return u.given("", args...)
}

// given is run with a standard input.
func (u user) given(input string, args ...string) string {
	u.Helper()
	r := u.try(input, nil, args...)
	if r.Code != 0 {
		u.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// fails runs kubectl, which must fail, and returns its standard error.
func (u user) fails(input string, args ...string) string {
	u.Helper()
	r := u.try(input, nil, args...)
	if r.Code == 0 {
		u.Fatalf("kubectl %s succeeded, but must not:\n%s%s", strings.Join(args, " "), r.Stdout, r.Stderr)
	}
	return r.Stderr
}

// says checks that a text contains all of wants.
func (u user) says(text string, wants ...string) {
	u.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			u.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

// is checks that a text is just that.
func (u user) is(text, want string) {
	u.Helper()
	if strings.TrimSpace(text) != want {
		u.Errorf("got %q, want %q", text, want)
	}
}

// serviceAccount waits until pods can be created in the namespace.
func (u user) serviceAccount() {
	u.Helper()
	harness.Eventually(u, patience, func() error {
		_, err := u.c.Client().CoreV1().ServiceAccounts(u.namespace).Get(u.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// eventually runs kubectl until it succeeds.
func (u user) eventually(what string, args ...string) {
	u.Helper()
	harness.Eventually(u, patience, func() error {
		if r := u.try("", nil, args...); r.Code != 0 {
			return fmt.Errorf("%s: %s%s", what, r.Stdout, r.Stderr)
		}
		return nil
	})
}

// logged returns an error unless a container's log contains the text.
func (u user) logged(text string, args ...string) error {
	u.Helper()
	r := u.try("", nil, append([]string{"logs"}, args...)...)
	if !strings.Contains(r.Stdout, text) {
		return fmt.Errorf("logs %s: %s%s", strings.Join(args, " "), r.Stdout, r.Stderr)
	}
	return nil
}
