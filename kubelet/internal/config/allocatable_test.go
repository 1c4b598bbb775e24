package config

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestEnforcement(t *testing.T) {
	const kubeconfig = "--kubeconfig=/k"
	c, err := load(t, header+"kubeReserved: {cpu: 70m, memory: 442Mi}\nkubeReservedCgroup: /runtime\nsystemReservedCgroup: /system", kubeconfig)
	if err != nil || len(c.Allocatable.BoundDaemons()) > 0 || !c.Allocatable.EnforcesPods() {
		t.Errorf("groups that are only named: %+v, %v", c.Allocatable.BoundDaemons(), err)
	}
	c, err = load(t, header+"enforceNodeAllocatable: [pods, kube-reserved-compressible, system-reserved]\nkubeReserved: {cpu: 70m}\nsystemReserved: {pid: \"99\"}",
		kubeconfig, "--kube-reserved-cgroup=/runtime", "--system-reserved-cgroup=/system.slice")
	if err != nil {
		t.Fatal(err)
	}
	bound := c.Allocatable.BoundDaemons()
	if len(bound) != 2 || bound[0].Whose != "system" || bound[0].Group != "/system.slice" || bound[0].Compressible || len(bound[0].Reserved) != 1 ||
		bound[0].Reserved["pid"] != resource.MustParse("99") {
		t.Fatalf("%+v", bound)
	}
	if bound[1].Group != "/runtime" || !bound[1].Compressible || bound[1].Reserved.Cpu().MilliValue() != 70 {
		t.Errorf("%+v", bound[1])
	}

	for enforced, want := range map[string]string{
		"pods,system-reserved":       "--system-reserved-cgroup must say which control group",
		"kube-reserved-compressible": "--kube-reserved-cgroup must say which control group",
		"pods,none":                  "nothing else may be enforced together with none",
		"pods,pods":                  "pods twice",
		"kube-reserved,kube-reserved-compressible --kube-reserved-cgroup=/r": "kube-reserved twice",
		"pods-compressible": "pods-compressible: there are",
		"everything":        "everything: there are",
		"kube-reserved --kube-reserved-cgroup=/r --cgroups-per-qos=false": "it needs --cgroups-per-qos",
		"system-reserved --system-reserved-cgroup=/s":                     "--system-reserved must say what is reserved",
		"pods --kube-reserved-cgroup=/r --reserved-cpus=0":                "--reserved-cpus can't be used with",
	} {
		if _, err := load(t, "", append(strings.Fields("--enforce-node-allocatable="+enforced), kubeconfig)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", enforced, err, want)
		}
	}
}
