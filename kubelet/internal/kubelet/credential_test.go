package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/kubelet/internal/config"
	"kctl/kubelet/internal/cri/critest"
	"kctl/proto/core"
)

// plugin is an image credential provider that runs a line of shell from the
// file "does" beside it.
const plugin = `#!/bin/sh
cat > /dev/null
. "${0%/*}/does"
`

// pluginSays is a line of shell that answers with a password.
func pluginSays(registry, user, password string) string {
	return fmt.Sprintf(`echo '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Image",`+
		`"cacheDuration":"0s","auth":{%q:{"username":%q,"password":%q}}}'`, registry, user, password)
}

// An image whose password only a plugin knows can be pulled. Whatever the
// plugin does instead of answering, the pod says so, and nothing is left
// behind.
func TestAPluginKnowsThePassword(t *testing.T) {
	registry := critest.NewRegistry(t)
	registry.User, registry.Password = "robot", "s3cret"
	image := registry.Push(t, "private/app:1", critest.Image{})
	host, _, _ := strings.Cut(image, "/")
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("cloud", plugin, 0o755)
	write("providers.yaml", `{"apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig","providers":[{"name":"cloud",
		"apiVersion":"credentialprovider.kubelet.k8s.io/v1","matchImages":[`+fmt.Sprintf("%q", host)+`],"defaultCacheDuration":"0s"}]}`, 0o600)
	b := newBed(t, func(c *config.Config) {
		c.Pulls.CredentialProviderConfig, c.Pulls.CredentialProviderBinDir = filepath.Join(dir, "providers.yaml"), dir
	})
	private := func(name string) *core.Pod {
		pod := shellPod(name, forever)
		pod.Spec.Containers[0].Image, pod.Spec.Containers[0].ImagePullPolicy = image, corev1.PullAlways
		return pod
	}
	for i, c := range []struct {
		does string
		says []string // all of them, in the message of ErrImagePull
	}{
		{pluginSays(host, "robot", "wrong"), []string{"private/app:1", "401 Unauthorized"}},
		{"echo no luck >&2; exit 3", []string{"credential provider cloud", "exit status 3", "no luck"}},
		{"kill -SEGV $$", []string{"credential provider cloud", "segmentation fault"}},
		{"echo rubbish", []string{"credential provider cloud", "its answer is not a CredentialProviderResponse"}},
	} {
		write("does", c.does, 0o600)
		name := fmt.Sprintf("bad-%d", i)
		b.create(private(name))
		var message string
		b.api.wait(name+" to say why it has no image", func() bool {
			pod := b.api.pod(name)
			if pod == nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Waiting == nil {
				return false
			}
			waiting := pod.Status.ContainerStatuses[0].State.Waiting
			message = waiting.Message
			return waiting.Reason == "ErrImagePull"
		})
		for _, part := range c.says {
			if !strings.Contains(message, part) {
				t.Errorf("%s: the pod says %q, and not %q", c.does, message, part)
			}
		}
		if strings.Contains(message, "wrong") {
			t.Errorf("the password is in %q", message)
		}
	}

	// A plugin that hangs holds up only its pod, and ends with it.
	write("does", "echo > \"${0%/*}/hangs\"; exec sleep 4711", 0o600)
	b.create(private("hanging"))
	b.eventually("the plugin to hang", func() bool { _, err := os.Stat(filepath.Join(dir, "hangs")); return err == nil })
	b.create(shellPod("beside", forever))
	b.waitPhase("beside", corev1.PodRunning)
	b.delete("hanging")
	b.api.wait("hanging to be gone", func() bool { return b.api.pod("hanging") == nil })
	b.eventually("the plugin to be gone with its pod", func() bool { return !runs(t, "sleep\x004711\x00") })

	write("does", pluginSays(host, "robot", "s3cret"), 0o600)
	b.create(private("good"))
	b.waitPhase("good", corev1.PodRunning)
	if registry.Pulls("private/app:1") == 0 {
		t.Error("the image was not pulled from the registry")
	}
}

// runs says whether a process has this command line.
func runs(t *testing.T, commandLine string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		found, _ := os.ReadFile(file) // processes that end meanwhile have none
		return string(found) == commandLine
	})
}
