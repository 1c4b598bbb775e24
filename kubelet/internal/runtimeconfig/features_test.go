package runtimeconfig

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/image"
	"kctl/proto/core"
)

func withFeatures(handlers ...*runtimeapi.RuntimeHandler) *Maker {
	return &Maker{Options: Options{Reported: func() *runtimeapi.StatusResponse {
		return &runtimeapi.StatusResponse{RuntimeHandlers: handlers}
	}}}
}

func TestRecursiveReadOnly(t *testing.T) {
	can := withFeatures(&runtimeapi.RuntimeHandler{Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}})
	for _, c := range []struct {
		mode      corev1.RecursiveReadOnlyMode
		supported bool
		readOnly  bool
		want      bool
		err       string
	}{
		{"", true, true, false, ""},
		{corev1.RecursiveReadOnlyDisabled, true, true, false, ""},
		{corev1.RecursiveReadOnlyIfPossible, false, true, false, ""},
		{corev1.RecursiveReadOnlyIfPossible, true, false, false, ""},
		{corev1.RecursiveReadOnlyIfPossible, true, true, true, ""},
		{corev1.RecursiveReadOnlyEnabled, true, true, true, ""},
		{corev1.RecursiveReadOnlyEnabled, false, true, false,
			`failed to resolve recursive read-only mode: volume "v" requested recursive read-only mode, but it is not supported by the runtime`},
		{corev1.RecursiveReadOnlyEnabled, true, false, false, "but it is not read-only"},
		{"Sometimes", true, true, false, `"Sometimes" is not supported`},
	} {
		m := can
		if !c.supported {
			m = withFeatures()
		}
		got, err := m.recursiveReadOnly(&Mount{Volume: "v", ReadOnly: c.readOnly, RecursiveReadOnly: c.mode}, "")
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

func TestWhatIsMounted(t *testing.T) {
	m, c := withFeatures(), &Container{}
	if _, err := m.mount(c, &Mount{ImageVolume: "models"}); err == nil || !strings.Contains(err.Error(), `"models"`) {
		t.Errorf("an image that was not got: %v", err)
	}
	c.ImageVolumes = map[string]image.Present{"models": {Ref: "sha256:1"}}
	got, err := m.mount(c, &Mount{ContainerPath: "m", ImageVolume: "models", ImageSubPath: "a/b", ReadOnly: true})
	if err != nil || got.Image.GetImage() != "sha256:1" || got.ImageSubPath != "a/b" || got.HostPath != "" || !got.Readonly || got.ContainerPath != "/m" ||
		got.UidMappings != nil {
		t.Errorf("an image: %v, %v", got, err)
	}
	ids := []*runtimeapi.IDMapping{{HostId: 65536, Length: 65536}}
	c.Sandbox = &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{UsernsOptions: &runtimeapi.UserNamespace{Uids: ids, Gids: ids}},
	}}}
	got, err = m.mount(c, &Mount{ContainerPath: "/v", HostPath: "/h"})
	if err != nil || len(got.UidMappings) != 1 || got.UidMappings[0].HostId != 65536 || len(got.GidMappings) != 1 {
		t.Errorf("in a user namespace: %v, %v", got, err)
	}
}

func TestUserNamespace(t *testing.T) {
	const unsupported = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
	no := false
	supported := []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{UserNamespaces: true}}, {Name: "vm"}}
	for _, c := range []struct {
		handlers []*runtimeapi.RuntimeHandler
		handler  string
		spec     core.PodSpec
		err      string
		own      bool
	}{
		{supported, "", core.PodSpec{}, "", false},
		{nil, "", core.PodSpec{}, "", false},
		{nil, "", core.PodSpec{HostUsers: &no}, unsupported, false},
		{supported, "", core.PodSpec{HostUsers: &no}, "", true},
		{supported, "vm", core.PodSpec{HostUsers: &no}, "can't set `spec.hostUsers: false`, RuntimeClass handler \"vm\" does not support user namespaces", false},
		{supported, "other", core.PodSpec{HostUsers: &no}, "can't set `spec.hostUsers: false`, RuntimeClass handler \"other\" does not support user namespaces",
			false},
		{supported, "", core.PodSpec{HostUsers: &no, HostNetwork: true}, "hostNetwork", false},
		{supported, "", core.PodSpec{HostUsers: &no, HostPID: true}, "hostPID", false},
	} {
		m := withFeatures(c.handlers...)
		m.UserIDs = func(types.UID) (uint32, uint32, error) { return 131072, 65536, nil }
		own, err := m.userNamespace(&core.Pod{Spec: c.spec}, c.handler)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || (own != nil) != c.own {
			t.Errorf("%+v with %q: %v, %v", c.spec, c.handler, own, err)
		}
		if own != nil && (own.Mode != runtimeapi.NamespaceMode_POD || own.Uids[0].HostId != 131072 || own.Gids[0].Length != 65536) {
			t.Errorf("%v", own)
		}
	}
}
