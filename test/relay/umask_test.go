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

// TestUmask: a pod that is not root's reads what it is given, also where kctl up is
// run by a shell that keeps its files to itself, as hardened machines' do.
func TestUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	c := harness.Start(t, harness.Options{})

	c.KctlInput(readsAll, "apply", "-f", "-")
	c.Kctl("wait", "pod/reader", "--for=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}", "--timeout=60s")
	log := c.Kctl("logs", "reader")
	if code := c.Kctl("get", "pod", "reader", "-o", "jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"); code != "0" || strings.Count(log, "the word") != 2 {
		t.Errorf("exit code %s:\n%s", code, log)
	}
}
