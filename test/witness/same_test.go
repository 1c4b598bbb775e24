package witness_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"kctl/test/harness"
)

// The command lines in testdata/same are run by kubectl and by kctl, side by
// side on one server. Their exit codes, what they print on standard output and, if
// kubectl is of the version whose words kctl has, on standard error must be the
// same, but for ages, resource versions and identities.
//
// Each side works in a namespace of its own, $NS, where it finds what its own
// earlier lines left. A file is a scenario; those in the folder rare, of flags and
// mistakes that few people come to, take as long again and are for long tests. For a
// line that begins with "?", only the exit code must be the same: the comment above
// it says why, and docs/kctl.md lists it. For one that begins with "!", kctl says on
// standard error in words of its own what is wrong. A line that begins with "@" and a
// number is for kubectls of that minor version or newer. The other files in the folder can
// be used by the scenarios; $NS is replaced in them.
func TestSameAsKubectl(t *testing.T) {
	t.Parallel()
	path, minor := newKubectl(t)
	c := harness.Start(t, harness.Options{Without: []string{"containerd", "scheduler", "kubelet", "registry"}})
	theirs := newSide(t, c, path, "same-a")
	ours := newSide(t, c, c.Bin("kctl"), "same-b")
	theirs.kubectl, ours.kubectl = minor, minor
	lines := 0
	const usual, rare = "testdata/same", "testdata/same/rare"
	for _, folder := range []string{usual, rare} {
		scenarios, err := filepath.Glob(folder + "/*.txt")
		if err != nil || len(scenarios) == 0 {
			t.Fatalf("no scenarios in %s: %v", folder, err)
		}
		for _, scenario := range scenarios {
			name := strings.TrimSuffix(filepath.Base(scenario), ".txt")
			t.Run(name, func(t *testing.T) {
				if folder == rare {
					harness.NeedLong(t, "few people come to these lines, and each starts two programs")
				}
				lines += compare(t, scenario, minor, theirs, ours)
			})
		}
	}
	t.Logf("%d command lines", lines)
}

// oldest is the minor version of the oldest kubectl that kctl is compared with, and
// current the one whose words on standard error kctl has.
const oldest, current = 30, 37

// ownWarnings are kctl's of workloads that wait for a controller (docs/kctl.md).
var ownWarnings = regexp.MustCompile(`(?m)^Warning: .* (?:no sign of|is there) a kube-controller-manager.*\n`)

// newKubectl finds the kubectl that `make upstream` builds or else the machine's,
// which must be no older than that, and returns its minor version.
func newKubectl(t *testing.T) (path string, minor int) {
	t.Helper()
	path = filepath.Join(harness.Bin(t), "upstream", "kubectl")
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("kubectl"); err != nil {
			t.Skip("skipped: there is no kubectl on the PATH, nor one of `make upstream`")
		}
	}
	out, err := exec.Command(path, "version", "--client", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ClientVersion struct{ Minor string } `json:"clientVersion"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	minor, err = strconv.Atoi(strings.TrimRight(answer.ClientVersion.Minor, "+"))
	if err != nil || minor < oldest {
		t.Skipf("skipped: %s is 1.%s, older than 1.%d", path, answer.ClientVersion.Minor, oldest)
	}
	return path, minor
}

// side is one of the two programs, with a namespace and a directory.
type side struct {
	program, namespace, dir string
	temporary               string // where the program's own files go, which diff prints the names of
	env                     []string
	kubectl                 int // the minor version of the kubectl to compare with
}

func newSide(t *testing.T, c *harness.Cluster, program, namespace string) *side {
	t.Helper()
	s := &side{program: program, namespace: namespace, dir: t.TempDir(), temporary: t.TempDir()}
	c.Kctl("create", "namespace", namespace)
	// Every namespace gets these a moment after it is created.
	c.Kctl("wait", "--namespace", namespace, "--for=create", "configmap/kube-root-ca.crt", "serviceaccount/default", "--timeout=2m")
	config, err := clientcmd.LoadFromFile(c.Kubeconfig("admin"))
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+s.dir, "TMPDIR="+s.temporary, "EDITOR="+filepath.Join(s.dir, "editor.sh"), "KUBE_EDITOR=",
		"TERM=dumb", "KUBECTL_APPLYSET=true",
		"GOGC=off") // each lives too shortly for the collector to be worth its time
	s.copyFiles(t)
	return s
}

// copyFiles copies the files that scenarios use to the side's directory.
func (s *side) copyFiles(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("testdata/same/files/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "$NS", s.namespace)
		if err := os.WriteFile(filepath.Join(s.dir, filepath.Base(file)), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a command line, quoted as for a shell.
func (s *side) run(t *testing.T, line string) harness.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	line = strings.ReplaceAll(line, "$NS", s.namespace)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.program+" "+line)
	cmd.Env, cmd.Dir, cmd.WaitDelay = s.env, s.dir, time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		t.Errorf("%s %s: %v", s.program, line, errors.Join(err, ctx.Err()))
		return harness.Result{Code: -1}
	}
	return harness.Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// compare runs a scenario and returns the number of its lines.
func compare(t *testing.T, scenario string, minor int, theirs, ours *side) int {
	file, err := os.Open(scenario)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if since, rest, ok := strings.Cut(line, " "); ok && strings.HasPrefix(since, "@") {
			if from, err := strconv.Atoi(since[1:]); err != nil || minor < from {
				continue
			}
			line = rest
		}
		lines++
		line, codeOnly := strings.CutPrefix(line, "?")
		line, ownWords := strings.CutPrefix(line, "!")
		var a, b harness.Result
		var both sync.WaitGroup
		both.Go(func() { a = theirs.run(t, line) })
		both.Go(func() { b = ours.run(t, line) })
		both.Wait()
		switch {
		case a.Code != b.Code:
			t.Errorf("other exit codes: %s\nkubectl: %d %s%s\nkctl:    %d %s%s", line, a.Code, a.Stdout, a.Stderr, b.Code, b.Stdout, b.Stderr)
		case !codeOnly && theirs.plain(a.Stdout) != ours.plain(b.Stdout):
			t.Errorf("other output: %s\n%s(kubectl %s, kctl %s)", line, lineDiff(theirs.plain(a.Stdout), ours.plain(b.Stdout)), a.Stderr, b.Stderr)
		case !codeOnly && !ownWords && minor >= current && theirs.plain(a.Stderr) != ours.plain(ownWarnings.ReplaceAllString(b.Stderr, "")):
			t.Errorf("other errors: %s\nkubectl: %s\nkctl:    %s", line, a.Stderr, b.Stderr)
		}
	}
	return lines
}

// lineDiff shows the lines that only one of the texts has.
func lineDiff(theirs, ours string) string {
	var out strings.Builder
	for _, side := range []struct{ mark, text, other string }{{"-", theirs, ours}, {"+", ours, theirs}} {
		others := map[string]int{}
		for line := range strings.SplitSeq(side.other, "\n") {
			others[line]++
		}
		for line := range strings.SplitSeq(side.text, "\n") {
			if others[line]--; others[line] < 0 {
				fmt.Fprintf(&out, "%s %s\n", side.mark, line)
			}
		}
	}
	if out.Len() == 0 {
		return "the same lines in another order\n" + ours
	}
	return out.String()
}

// varying is what differs from run to run, and what it is replaced by.
var varying = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`applyset-[\w-]{43}-v1`), "SET"},
	{regexp.MustCompile(`\(y/[nN]\)`), "(y/N)"}, // older kubectls don't mark the default answer
	{regexp.MustCompile(`"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"?`), "TIME"},
	{regexp.MustCompile(`(?m)^CreationTimestamp: .*$`), "CreationTimestamp: TIME"},
	{regexp.MustCompile(`(?m)^\s*creationTimestamp: null\n`), ""},     // written by kubectl before 1.34
	{regexp.MustCompile(`(?m)^\s*"creationTimestamp": null,?\n`), ""}, // the same
	{regexp.MustCompile(`"creationTimestamp":null,?`), ""},            // the same
	{regexp.MustCompile(`(resourceVersion"?: )"\d+"`), `${1}"N"`},
	{regexp.MustCompile(`Resource Version:(\s+)\d+`), "Resource Version:${1}N"},
	{regexp.MustCompile(`\b\d+(s|ms|m|h|d)(\d+s)?\b`), "AGE"},
	{regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`(?m)^preferences: \{\}\n`), ""}, // written by kubectl before 1.34
	{regexp.MustCompile(`\{\s*\}`), "{}"},
	{regexp.MustCompile(`metadata: \{\}`), "metadata:"},                        // where null stood
	{regexp.MustCompile(`ConfigMapOptional:(\s+)<nil>`), "Optional:${1}false"}, // in kubectl before 1.34
	{regexp.MustCompile(`(LIVE|MERGED)-\d+`), "$1"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000`), "TIME"},
	{regexp.MustCompile(`HealthCheck NodePort:\s+\d+`), "HealthCheck NodePort:  N"},
	{regexp.MustCompile(`kube-api-access-\w{5}`), "VOLUME"},
	{regexp.MustCompile(`kubectl`), "kctl"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	{regexp.MustCompile(`[ \t]{2,}`), "  "}, // column widths depend on the ages
	{regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w+ .*`), "TIME"},
}

// newWords is what kubectl 1.37 prints differently from earlier versions. When
// kctl is compared with those, it is removed or put into the new words.
var newWords = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(` deleted from \S+ namespace`), " deleted"},
	{regexp.MustCompile(`(?m)^Events:\s+<none>\n`), ""},
	{regexp.MustCompile(`(\d/(?:TCP|UDP)) \(\w+\)`), "$1"},
	{regexp.MustCompile(`#success=(\d+) #failure=`), "successThreshold=$1 failureThreshold="},
	{regexp.MustCompile(`(?m)^(Service Name|Pod Management Policy|Time Zone|Mountable secrets|Tokens|Namespace):.*\n`), ""},
	{regexp.MustCompile(`(?m)^Persistent Volume Claim Retention Policy:\n(  When.*\n)+`), ""},
}

func (s *side) plain(text string) string {
	text = strings.ReplaceAll(text, s.namespace, "NS")
	text = strings.ReplaceAll(text, s.dir, "DIR")
	text = strings.ReplaceAll(text, s.temporary, "TMP")
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.as)
	}
	for _, v := range newWords {
		if s.kubectl < 37 {
			text = v.what.ReplaceAllString(text, v.as)
		}
	}
	return text
}
