package relay_test

import (
	"strings"
	"syscall"
	"testing"

	"kctl/test/harness"
)

const readsAll = `apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {word: the word}
---
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 1000, runAsGroup: 1000}
  containers:
  - name: reader
    image: ` + harness.Demo + `
    args: [cat, /etc/hosts, /etc/resolv.conf, /words/word, /one, /about/name, /var/run/secrets/kubernetes.io/serviceaccount/token]
    volumeMounts:
    - {name: words, mountPath: /words}
    - {name: words, mountPath: /one, subPath: word}
    - {name: about, mountPath: /about}
  volumes:
  - {name: words, configMap: {name: words}}
  - {name: about, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
`

// TestUmask: a pod that does not run as root can read what it is given, even if
// kctl up was run with a umask that keeps files private, as on hardened
// machines.
func TestUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	c := harness.Start(t, harness.Options{})

	c.KctlInput(readsAll, "apply", "-f", "-")
	c.Kctl("wait", "pod/reader", "--for=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}", "--timeout=60s")
	log := c.Kctl("logs", "reader")
	if code := c.Kctl("get", "pod", "reader", "-o", "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"); code != "0" ||
		strings.Count(log, "the word") != 2 {
		t.Errorf("exit code %s:\n%s", code, log)
	}
}
