package cri_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/kubelet/internal/cri"
)

// told is a runtime that gives this answer; without one, it does not know the
// call.
type told struct {
	grpc.ClientConnInterface
	config *runtimeapi.RuntimeConfigResponse
	info   string
	err    error
}

func (r told) Invoke(_ context.Context, method string, _, reply any, _ ...grpc.CallOption) error {
	switch {
	case r.err != nil:
		return r.err
	case strings.HasSuffix(method, "/Status"):
		proto.Merge(reply.(proto.Message), &runtimeapi.StatusResponse{Info: map[string]string{"config": r.info}})
		return nil
	case r.config == nil:
		return status.Error(codes.Unimplemented, "unknown method")
	}
	proto.Merge(reply.(proto.Message), r.config)
	return nil
}

func TestCgroupDriver(t *testing.T) {
	says := func(driver runtimeapi.CgroupDriver) *runtimeapi.RuntimeConfigResponse {
		return &runtimeapi.RuntimeConfigResponse{Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: driver}}
	}
	containerd := func(runtimes string) string {
		return `{"containerd":{"defaultRuntimeName":"runc","runtimes":{` + runtimes + `}},"sandboxImage":"pause"}`
	}
	const systemd = `"runc":{"runtimeType":"io.containerd.runc.v2","options":{"SystemdCgroup":true}}`
	for name, c := range map[string]struct {
		runtime told
		want    string
	}{
		"systemd":                          {told{config: says(runtimeapi.CgroupDriver_SYSTEMD)}, "systemd"},
		"cgroupfs":                         {told{config: says(runtimeapi.CgroupDriver_CGROUPFS), info: containerd(systemd)}, "cgroupfs"},
		"another system":                   {told{config: &runtimeapi.RuntimeConfigResponse{}, info: containerd(systemd)}, ""},
		"containerd 1, systemd":            {told{info: containerd(systemd)}, "systemd"},
		"containerd 1, no options":         {told{info: containerd(`"runc":{"runtimeType":"io.containerd.runc.v2","options":null}`)}, "cgroupfs"},
		"containerd 1, not the default":    {told{info: containerd(`"other":{"runtimeType":"io.containerd.runc.v2"}`)}, ""},
		"containerd 1, no runc":            {told{info: containerd(`"runc":{"runtimeType":"io.containerd.kata.v2"}`)}, ""},
		"nothing":                          {told{}, ""},
		"another runtime's configuration":  {told{info: "[crio]\n"}, ""},
		"a configuration of another shape": {told{info: `{"containerd":[]}`}, ""},
	} {
		if got, err := cri.NewOver(c.runtime, cri.Options{}).CgroupDriver(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
	_, err := cri.NewOver(told{err: status.Error(codes.Unavailable, "gone")}, cri.Options{}).CgroupDriver(t.Context())
	if !cri.IsUnavailable(err) {
		t.Errorf("a runtime that is away: %v", err)
	}
}
