package witness_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"kctl/test/harness"
)

const pod = `apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: kctl.local/demo
    imagePullPolicy: IfNotPresent
    ports: [{containerPort: 8080}]
`

// pods run, and are looked at.
func pods(u user, _ string) {
	u.serviceAccount()
	u.is(u.given(pod, "apply", "-f", "-"), "pod/web created")
	u.is(u.given(strings.Replace(pod, "{app: web}", "{app: changed}", 1), "apply", "-f", "-"), "pod/web configured")
	u.is(u.run("run", "started", "--image=kctl.local/demo", "--restart=Never"), "pod/started created")
	u.run("wait", "pod/web", "pod/started", "--for=condition=Ready", "--timeout=60s")
	u.says(u.run("get", "pods", "-o", "wide"), "web", "1/1", "Running", u.c.Node)
	u.says(u.run("get", "pod", "web", "-o", "yaml"), "kind: Pod", "phase: Running", "app: changed")
	u.is(u.run("get", "pods", "-l", "app=changed", "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"), "web")
	u.says(u.run("describe", "pod", "web"), "Successfully assigned "+u.namespace+"/web", "Started", "kctl.local/demo")
	u.says(u.run("logs", "web"), "listening on :8080")
	u.says(u.run("logs", "-l", "app=changed", "--prefix", "--timestamps", "--tail=1"), "[pod/web/c]", "listening on :8080")
	u.says(u.run("get", "events", "--field-selector=involvedObject.name=web"), "Started")
	u.is(u.run("exec", "web", "--", "/demo", "echo", "hello"), "hello")
	if r := u.try("", nil, "exec", "web", "--", "/demo", "exit", "7"); r.Code != 7 {
		u.Errorf("exec of what ends with 7: %d %s", r.Code, r.Stderr)
	}
	u.says(u.fails("", "exec", "web", "-c", "other", "--", "/demo"), "container other is not valid for pod web")
	u.says(u.run("expose", "pod", "web", "--port=80", "--target-port=8080"), "service/web exposed")
	u.says(u.run("delete", "pod", "started", "--grace-period=1"), `pod "started" deleted`)
}

// streams: what goes into a container and what comes out.
func streams(u user, shell string) {
	u.is(u.run("run", "shell", "--image="+shell, "--image-pull-policy=IfNotPresent", "--restart=Never", "--command", "--", "sleep", "1000"), "pod/shell created")
	u.run("wait", "pod/shell", "--for=condition=Ready", "--timeout=60s")
	u.is(u.given("one\ntwo\n", "exec", "-i", "shell", "--", "wc", "-l"), "2")

	dir := u.TempDir()
	there := filepath.Join(dir, "there")
	large := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB: many messages in any protocol
	if err := os.WriteFile(there, []byte(large), 0o600); err != nil {
		u.Fatal(err)
	}
	u.run("cp", there, u.namespace+"/shell:/tmp/there")
	u.run("cp", u.namespace+"/shell:/tmp/there", filepath.Join(dir, "back"))
	if back, err := os.ReadFile(filepath.Join(dir, "back")); err != nil || string(back) != large {
		u.Errorf("copied there and back: %d bytes of %d, %v", len(back), len(large), err)
	}

	// Attached from the start: what is typed is read, and what is written is
	// shown. The runtime passes input on before it listens for output, so an
	// immediate answer may be in the log only.
	out := u.given("kubectl\n", "run", "attached", "--image="+shell, "--image-pull-policy=IfNotPresent", "--restart=Never", "-i", "--rm", "--quiet",
		"--command", "--", "sh", "-c", "read line; sleep 1; echo heard $line")
	u.says(out, "heard kubectl")
	// Attached later.
	u.run("run", "listens", "--image="+shell, "--image-pull-policy=IfNotPresent", "--restart=Never", "--stdin", "--attach=false",
		"--command", "--", "sh", "-c", "while read line; do echo got $line; [ $line != end ] || exit 0; done")
	u.run("wait", "pod/listens", "--for=condition=Ready", "--timeout=60s")
	u.says(u.given("first\nend\n", "attach", "-i", "listens"), "got first", "got end")
	u.says(u.run("logs", "-f", "listens"), "got first", "got end")
	u.run("delete", "pod", "listens", "--grace-period=1")
}

var forwarded = regexp.MustCompile(`(?:Forwarding from|Starting to serve on) (127\.0\.0\.1:\d+)`)

// forwarding: the ways from this machine to the ports of pods.
func forwarding(u user, _ string) {
	u.serves([]string{"port-forward", "pod/web", ":8080"}, "/", "hello from pod web")
	u.serves([]string{"port-forward", "service/web", ":80"}, "/", "hello from pod web")
	u.serves([]string{"proxy", "--port=0"}, "/api/v1/namespaces/"+u.namespace+"/pods/web:8080/proxy/", "hello from pod web")
}

// serves runs a kubectl that serves on a local port, and sends it a request.
func (u user) serves(args []string, path, want string) {
	u.Helper()
	lines, stop := u.speaks(args...)
	defer stop()
	lines.Scan()
	address := forwarded.FindStringSubmatch(lines.Text())
	if address == nil {
		u.Fatalf("kubectl %s says %q, %v", strings.Join(args, " "), lines.Text(), lines.Err())
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 { // each makes a connection of its own
		answer, err := client.Get("http://" + address[1] + path)
		if err != nil {
			u.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			u.Errorf("kubectl %s: %d %s, %v", strings.Join(args, " "), answer.StatusCode, body, err)
		}
	}
}

// debugging: a container beside those of a pod, a copy of a pod, a pod on a node.
func debugging(u user, shell string) {
	if u.minor >= 25 { // older kubectls write to an API that has been removed
		u.says(u.given("", "debug", "web", "--image="+shell, "--image-pull-policy=IfNotPresent", "--container=beside", "--target=c", "--attach=false", "--", "echo",
			"from beside"), "")
		harness.Eventually(u, patience, func() error { return u.logged("from beside", "web", "-c", "beside") })
	}
	u.run("debug", "web", "--copy-to=copied", "--container=c", "--image="+shell, "--attach=false", "--", "echo", "from the copy")
	harness.Eventually(u, patience, func() error { return u.logged("from the copy", "copied", "-c", "c") })
	u.run("delete", "pod", "web", "copied", "shell", "--grace-period=1", "--ignore-not-found")
	u.is(u.run("get", "pods", "-o", "name"), "")
}
