package pod

import (
	"slices"
	"strings"
	"testing"

	"kctl/apiserver/internal/field"
)

// refused is a spec, or a part of one container, with the one error it gets: ""
// if it is valid.
type refused struct{ yaml, want string }

func checkSpecs(t *testing.T, prefix string, cases []refused) {
	t.Helper()
	for _, c := range cases {
		pod := fromYAML(t, "metadata: {name: web, namespace: default}\nspec: "+prefix+c.yaml+closing(prefix))
		setAllDefaults(pod)
		checkErrors(t, c.yaml, validateCreate(pod), c.want)
	}
}

// closing adds the missing closing brackets.
func closing(text string) string {
	open := ""
	for _, r := range text {
		switch r {
		case '{':
			open = "}" + open
		case '[':
			open = "]" + open
		case '}', ']':
			open = open[1:]
		}
	}
	return open
}

func checkErrors(t *testing.T, what string, errs field.ErrorList, want string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("%s\n is refused: %s", what, strings.Join(got, "\n  "))
	case want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)):
		t.Errorf("%s\n  got: %s\n want: %s", what, strings.Join(got, "\n       "), want)
	}
}

func TestValidateSpec(t *testing.T) {
	const c = "containers: [{name: a, image: i}]"
	checkSpecs(t, "", []refused{
		{"{" + c + "}", ""},
		{"{containers: []}", "spec.containers: Required value"},
		{"{containers: [{name: a, image: i}, {name: a, image: i}]}", `spec.containers[1].name: Duplicate value: "a"`},
		{"{containers: [{image: i}]}", "spec.containers[0].name: Required value"},
		{"{containers: [{name: A_b, image: i}]}", `spec.containers[0].name: Invalid value: "A_b": a lowercase RFC 1123 label must consist of`},
		{"{containers: [{name: a}]}", "spec.containers[0].image: Required value"},
		{`{containers: [{name: a, image: " i"}]}`, `spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace`},
		{"{" + c + ", restartPolicy: Sometimes}", `spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`},
		{"{" + c + ", dnsPolicy: Mine}", `spec.dnsPolicy: Unsupported value: "Mine"`},
		{"{" + c + ", dnsPolicy: None}", "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"},
		{"{" + c + ", dnsPolicy: None, dnsConfig: {}}", "spec.dnsConfig.nameservers: Required value"},
		{"{" + c + ", dnsPolicy: None, dnsConfig: {nameservers: [1.2.3.4], searches: [a.b, ., _x.y], options: [{name: ndots}]}}", ""},
		{"{" + c + ", dnsConfig: {nameservers: [x]}}", `spec.dnsConfig.nameservers[0]: Invalid value: "x": must be a valid IP address`},
		{"{containers: [{name: a, image: i, lifecycle: {stopSignal: SIGTERM}}]}",
			"spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`"},
		{"{os: {name: linux}, containers: [{name: a, image: i, lifecycle: {stopSignal: SIGRTMIN+15}}]}", ""},
		{"{os: {name: linux}, containers: [{name: a, image: i, lifecycle: {stopSignal: SIGRTMAX-14}}]}", ""},
		{"{os: {name: linux}, containers: [{name: a, image: i, lifecycle: {stopSignal: SIGTREM}}]}",
			`spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGTREM": supported values: "SIGABRT", "SIGALRM", `},
		{"{os: {name: windows}, containers: [{name: a, image: i, lifecycle: {stopSignal: SIGINT}}]}",
			`spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGINT": supported values: "SIGKILL", "SIGTERM"`},
		{"{" + c + ", activeDeadlineSeconds: 0}", "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"},
		{"{" + c + ", hostname: a.b}", `spec.hostname: Invalid value: "a.b"`},
		{"{" + c + ", serviceAccountName: A}", `spec.serviceAccountName: Invalid value: "A"`},
		{"{" + c + ", nodeName: A}", `spec.nodeName: Invalid value: "A"`},
		{"{" + c + ", nodeSelector: {a/b/c: x}}", `spec.nodeSelector: Invalid value: "a/b/c"`},
		{"{" + c + ", nodeName: n, schedulingGates: [{name: g}]}", "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
		{"{" + c + ", schedulingGates: [{name: g}, {name: g}]}", `spec.schedulingGates[1]: Duplicate value: "g"`},
		{"{" + c + ", hostAliases: [{ip: x}]}", `spec.hostAliases[0].ip: Invalid value: "x"`},
		{"{" + c + ", priorityClassName: A}", `spec.priorityClassName: Invalid value: "A"`},
		{"{" + c + ", preemptionPolicy: X}", `spec.preemptionPolicy: Unsupported value: "X"`},
		{"{" + c + ", os: {name: beos}}", `spec.os: Unsupported value: "beos"`},
		{"{" + c + ", overhead: {cpu: -1}}", `spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		{"{" + c + ", overhead: {hugepages-2Mi: 2Mi}}", "spec.overhead: Forbidden: HugePages require cpu or memory"},
		{"{" + c + ", overhead: {hugepages-2Mi: 1Mi, cpu: 1}}", `spec.overhead.limits[hugepages-2Mi]: Invalid value: "1Mi": 1Mi is not positive`},
		{"{" + c + ", ephemeralContainers: [{name: d, image: i}]}", "spec.ephemeralContainers: Forbidden: cannot be set on create"},
		{"{" + c + ", schedulingGroup: {podGroupName: g}}", "spec.schedulingGroup: Forbidden: belongs to an alpha feature"},
		{"{" + c + ", initContainers: [{name: a, image: i}]}", `spec.initContainers[0].name: Duplicate value: "a"`},
		{"{" + c + ", initContainers: [{name: b, image: i, livenessProbe: {exec: {command: [x]}}}]}",
			"spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"},
		{"{" + c + ", initContainers: [{name: b, image: i, restartPolicy: Always, livenessProbe: {exec: {command: [x]}}}]}", ""},
		{"{containers: [{name: a, image: i, ports: [{containerPort: 1, hostPort: 5}]}, {name: b, image: i, ports: [{containerPort: 2, hostPort: 5}]}]}",
			`spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//5"`},
		{"{hostNetwork: true, containers: [{name: a, image: i, ports: [{containerPort: 1, hostPort: 5}]}]}",
			"spec.containers[0].ports[0].hostPort: Invalid value: 5: must match `containerPort` when `hostNetwork` is true"},
		{"{containers: [{name: a, image: i, ports: [{containerPort: 1, hostPort: 5}]}], " +
			"initContainers: [{name: b, image: i, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 5}]}]}", ""},
		{"{containers: [{name: a, image: i}], volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}",
			"spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"},
	})
}

// TestValidateOfSystem: fields of one operating system are refused for pods of
// the other, and the Windows options are validated.
func TestValidateOfSystem(t *testing.T) {
	const c, windows, linux = "containers: [{name: a, image: i}]", ", os: {name: windows}, ", ", os: {name: linux}, "
	user := func(text, want string) refused {
		if want != "" {
			want = "spec.securityContext.windowsOptions.runAsUserName: Invalid value: " + want
		}
		return refused{"{" + c + ", securityContext: {windowsOptions: {runAsUserName: '" + text + "'}}}", want}
	}
	checkSpecs(t, "", []refused{
		{"{" + c + ", os: {name: ''}}", "spec.os.name: Required value"},
		{"{" + c + windows + "hostNetwork: true, securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM'}}}", ""},
		{"{" + c + windows + "hostPID: true}", "spec.hostPID: Forbidden: cannot be set for a windows pod"},
		{"{" + c + windows + "securityContext: {runAsUser: 1}}", "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"},
		{"{containers: [{name: a, image: i, securityContext: {privileged: true}}]" + windows + "}",
			"spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod"},
		{"{" + c + windows + "resources: {requests: {storage: 1}}}", "spec.resources: Forbidden: may not be set for a windows pod"},
		{"{" + c + linux + "securityContext: {runAsUser: 1}}", ""},
		{"{" + c + linux + "securityContext: {windowsOptions: {}}}", "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
		{"{initContainers: [{name: b, image: i, securityContext: {windowsOptions: {}}}], " + c + linux + "}",
			"spec.initContainers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
		{"{" + c + ", securityContext: {windowsOptions: {hostProcess: true}}}",
			"spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"},
		{"{containers: [{name: a, image: i, securityContext: {windowsOptions: {hostProcess: false}}}], hostNetwork: true, securityContext: " +
			"{windowsOptions: {hostProcess: true}}}",
			"spec.containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if " +
				"both are specified, was true"},
		{"{containers: [{name: a, image: i, securityContext: {windowsOptions: {hostProcess: true}}}, {name: b, image: i}], hostNetwork: true}",
			`spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers`},
		{"{" + c + ", securityContext: {windowsOptions: {gmsaCredentialSpecName: A_b}}}",
			`spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: "A_b"`},
		{"{" + c + ", securityContext: {windowsOptions: {gmsaCredentialSpec: ''}}}",
			`spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string`},
		user("Administrator", ""),
		user(`corp.example.com\jane`, ""),
		user("", `"": runAsUserName cannot be an empty string`),
		user(`a\b\c`, `"a\\b\\c": runAsUserName cannot contain more than one backslash`),
		user(`a\`, `"a\\": runAsUserName's User cannot be empty`),
		user(`.a:\b`, `".a:\\b": runAsUserName's Domain doesn't match the NetBios nor the DNS format`),
		user(". .", `". .": runAsUserName's User cannot contain only periods or spaces`),
		user("a@b", "\"a@b\": runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"),
	})
}

func TestValidateContainer(t *testing.T) {
	checkSpecs(t, "{containers: [{name: a, image: i, ", []refused{
		{"imagePullPolicy: Often", `spec.containers[0].imagePullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"`},
		{"terminationMessagePolicy: X", `spec.containers[0].terminationMessagePolicy: Unsupported value: "X"`},
		{"ports: [{containerPort: 0}]", "spec.containers[0].ports[0].containerPort: Required value"},
		{"ports: [{containerPort: 70000}]", "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"},
		{"ports: [{containerPort: 1, protocol: tcp}]", `spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"`},
		{"ports: [{name: p, containerPort: 1}, {name: p, containerPort: 2}]", `spec.containers[0].ports[1].name: Duplicate value: "p"`},
		{"ports: [{containerPort: 1, hostIP: any}]", ""}, // upstream's, too
		{"env: [{value: x}]", "spec.containers[0].env[0].name: Required value"},
		{`env: [{name: "a=b"}]`, `spec.containers[0].env[0].name: Invalid value: "a=b"`},
		{"env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
			"spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"},
		{"env: [{name: A, valueFrom: {}}]", `spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `},
		{"env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}]",
			`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels"`},
		{"env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['app']\"}}}]", ""},
		{"env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.name['app']\"}}}]",
			`spec.containers[0].env[0].valueFrom.fieldRef: Invalid value: "metadata.name": does not support subscript`},
		{"env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.foo}}}]",
			`spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.foo": error converting fieldPath: field label not supported: spec.foo`},
		{"env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2}}}]",
			`spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`},
		{"env: [{name: A, valueFrom: {secretKeyRef: {name: s}}}]", "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"},
		{"envFrom: [{prefix: x}]", "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"},
		{"volumeMounts: [{name: v, mountPath: /x}]", `spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
			`spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{"resources: {requests: {cpu: -1}}", `spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		{"resources: {requests: {pods: 1}}", `spec.containers[0].resources.requests[pods]: Invalid value: "pods": must be a standard resource for containers`},
		{"resources: {requests: {example.com/gpu: 1}}", "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"},
		{"resources: {limits: {example.com/gpu: 1}}", ""},
		{"resources: {limits: {hugepages-2Mi: 2Mi}}", "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"},
		{"resources: {limits: {hugepages-2Mi: 4Mi, memory: 1}}", ""},
		{"livenessProbe: {}", "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
		{"livenessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}",
			"spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"},
		{"livenessProbe: {exec: {command: [x]}, successThreshold: 2}", "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"},
		{"livenessProbe: {exec: {command: [x]}, periodSeconds: -1}",
			"spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"readinessProbe: {exec: {command: [x]}, terminationGracePeriodSeconds: 5}",
			"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes"},
		{"startupProbe: {httpGet: {port: 0}}", "spec.containers[0].startupProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{"startupProbe: {httpGet: {port: 1, scheme: FTP}}",
			`spec.containers[0].startupProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"`},
		{"lifecycle: {preStop: {sleep: {seconds: 31}}}",
			"spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)"},
		{"lifecycle: {postStart: {exec: {}}}", "spec.containers[0].lifecycle.postStart.exec.command: Required value"},
		{"securityContext: {runAsUser: -1}", "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"securityContext: {privileged: true, allowPrivilegeEscalation: false}", "spec.containers[0].securityContext: Invalid value: "},
		{"securityContext: {seccompProfile: {type: Localhost}}",
			"spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"},
		{"securityContext: {procMount: Unmasked}",
			"spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`"},
		{"restartPolicy: OnFailure", ""},
		{"restartPolicy: Never, restartPolicyRules: [{exitCodes: {operator: In, values: [1]}}]",
			`spec.containers[0].restartPolicyRules[0].action: Unsupported value: "": supported values: "Restart", "RestartAllContainers"`},
		{"restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]",
			"spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"},
	})
}

func TestValidateVolumes(t *testing.T) {
	checkSpecs(t, "{serviceAccountName: s, containers: [{name: a, image: i}], volumes: [{", []refused{
		{"name: V, emptyDir: {}", `spec.volumes[0].name: Invalid value: "V"`},
		{"emptyDir: {}", "spec.volumes[0].name: Required value"},
		{"name: v}, {name: v", `spec.volumes[1].name: Duplicate value: "v"`},
		{"name: v, emptyDir: {}, hostPath: {path: /x}", "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"},
		{"name: v, hostPath: {path: /x/../y}", `spec.volumes[0].hostPath.path: Invalid value: "/x/../y": must not contain '..'`},
		{"name: v, csi: {driver: A_b}", `spec.volumes[0].csi.driver: Invalid value: "A_b"`},
		{"name: v, hostPath: {path: /x, type: Blob}", `spec.volumes[0].hostPath.type: Unsupported value: "Blob"`},
		{"name: v, emptyDir: {mode: 1024}", "spec.volumes[0].emptyDir.mode: Invalid value: 1024: must be a number between 0 and 01777 (octal), both inclusive"},
		{"name: v, emptyDir: {sizeLimit: -1}", "spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"},
		{"name: v, projected: {sources: [{}, {serviceAccountToken: {path: t, expirationSeconds: 600}}, {configMap: {name: c, items: [{key: k, path: t}]}}]}", ""},
		{"name: v, projected: {sources: [{serviceAccountToken: {expirationSeconds: 600}}]}", "spec.volumes[0].projected.path: Required value"},
		{"name: v, fc: {targetWWNs: [w]}", "spec.volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified"},
		{"name: v, flocker: {datasetName: a/b}", `spec.volumes[0].flocker.datasetName: Invalid value: "a/b": must not contain '/'`},
		{"name: v, quobyte: {registry: r, volume: v}",
			`spec.volumes[0].quobyte.registry: Invalid value: "r": must be a host:port pair or multiple pairs separated by commas`},
		{"name: v, iscsi: {targetPortal: p, iqn: x}", `spec.volumes[0].iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa`},
		{"name: v, iscsi: {targetPortal: p, iqn: iqn.2001-04.a:b, lun: 256}", "spec.volumes[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"},
		{"name: v, azureDisk: {diskName: d, diskURI: x, kind: Managed}",
			`spec.volumes[0].azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/`},
		{"name: v, gitRepo: {repository: r, directory: ../x}", `spec.volumes[0].gitRepo.directory: Invalid value: "../x": must not contain '..'`},
		{"name: v, storageos: {volumeName: V}", `spec.volumes[0].storageos.volumeName: Invalid value: "V"`},
		{"name: v, flexVolume: {driver: a/b, options: {a.k8s.io/x: z}}",
			`spec.volumes[0].flexVolume.options[a.k8s.io/x]: Invalid value: "a.k8s.io/x": kubernetes.io and k8s.io namespaces are reserved`},
		{"name: v, iscsi: {targetPortal: '" + strings.Repeat("p", 63) + "', iqn: iqn.2001-04.a:b, initiatorName: iqn.2001-04.a:b}",
			`spec.volumes[0].name: Invalid value: "v": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters`},
		{"name: v, iscsi: {targetPortal: '" + strings.Repeat("p", 63) + "', iqn: iqn.2001-04.a:b}", ""},
		{"name: v, cinder: {volumeID: v, secretRef: {}}", "spec.volumes[0].cinder.secretRef.name: Required value"},
		{"name: v, csi: {driver: a.b, nodePublishSecretRef: {name: A}}", `spec.volumes[0].csi.name: Invalid value: "A"`},
		{"name: v, configMap: {name: c, defaultUser: 0, items: [{key: k, path: p, user: 2147483647}]}", ""},
		{"name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 600, user: 5}}]}", ""},
		{"name: v, configMap: {name: c, defaultUser: -1}", "spec.volumes[0].configMap.defaultUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, configMap: {name: c, items: [{key: k, path: p, user: -1}]}", "spec.volumes[0].configMap.items[0].user: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, secret: {secretName: s, defaultUser: -1}", "spec.volumes[0].secret.defaultUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, downwardAPI: {defaultUser: -1}", "spec.volumes[0].downwardAPI.defaultUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, downwardAPI: {items: [{path: p, user: -1, fieldRef: {fieldPath: metadata.name}}]}", "spec.volumes[0].downwardAPI.user: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, projected: {defaultUser: -1, sources: []}", "spec.volumes[0].projected.defaultUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, projected: {sources: [{clusterTrustBundle: {name: c, path: p, user: -1}}]}", "spec.volumes[0].projected.sources[0].clusterTrustBundle.user: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, projected: {sources: [{podCertificate: {signerName: a.b/c, keyType: ED25519, credentialBundlePath: p, user: -1}}]}", "spec.volumes[0].projected.sources[0].podCertificate.user: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 600, user: -1}}]}", "spec.volumes[0].projected.sources[0].serviceAccountToken.user: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"name: v, csi: {driver: a.b, nodePublishSecretRef: {}}", "spec.volumes[0].csi.nodePublishSecretRef.name: Required value"},
		{"name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}",
			"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"},
		{"name: v, ephemeral: {volumeClaimTemplate: {metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}",
			"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"},
		{"name: v, secret: {}", "spec.volumes[0].secret.secretName: Required value"},
		{"name: v, secret: {secretName: s, defaultMode: 4096}",
			"spec.volumes[0].secret.defaultMode: Invalid value: 4096: must be a number between 0 and 0777 (octal), both inclusive"},
		{"name: v, configMap: {name: c, items: [{key: k, path: ../x}]}", `spec.volumes[0].configMap.items[0].path: Invalid value: "../x": must not contain '..'`},
		{"name: v, configMap: {name: c, items: [{key: k, path: ..x}]}", `spec.volumes[0].configMap.items[0].path: Invalid value: "..x": must not start with '..'`},
		{"name: v, configMap: {name: c, items: [{path: x}]}", "spec.volumes[0].configMap.items[0].key: Required value"},
		{"name: v, downwardAPI: {items: [{path: x}]}", "spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"},
		{"name: v, projected: {sources: [{serviceAccountToken: {path: t, expirationSeconds: 60}}]}",
			"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes"},
		{"name: v, projected: {sources: [{secret: {name: s, items: [{key: k, path: t}]}}, {configMap: {name: c, items: [{key: k, path: t}]}}]}",
			`spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths`},
		{"name: v, persistentVolumeClaim: {claimName: ''}", "spec.volumes[0].persistentVolumeClaim.claimName: Required value"},
		{"name: v, image: {reference: ''}", "spec.volumes[0].image.reference: Required value"},
		{"name: v, nfs: {server: s, path: x}", `spec.volumes[0].nfs.path: Invalid value: "x": must be an absolute path`},
	})
}

func TestValidateMounts(t *testing.T) {
	checkSpecs(t, "{volumes: [{name: v}], containers: [{name: a, image: i, volumeMounts: [{name: v, ", []refused{
		{"mountPath: /x", ""},
		{"mountPath: ''", "spec.containers[0].volumeMounts[0].mountPath: Required value"},
		{"mountPath: /x}, {name: v, mountPath: /x", `spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/x": must be unique`},
		{"mountPath: /x, subPath: a/../b", `spec.containers[0].volumeMounts.subPath: Invalid value: "a/../b": must not contain '..'`},
		{"mountPath: /x, subPath: /a", `spec.containers[0].volumeMounts.subPath: Invalid value: "/a": must be a relative path`},
		{"mountPath: /x, subPath: a, subPathExpr: b",
			`spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive`},
		{"mountPath: /x, mountPropagation: Bidirectional",
			"spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers"},
		{"mountPath: /x, recursiveReadOnly: Enabled", "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"},
	})
}

func TestFilesOfVariables(t *testing.T) {
	const before = "{volumes: [{name: own, emptyDir: {}}, {name: up, hostPath: {path: /tmp}}], " +
		"containers: [{name: a, image: i, env: [{name: A, valueFrom: {fileKeyRef: {path: f, key: K, volumeName: "
	checkSpecs(t, before, []refused{
		{"own", ""},
		{"up", `spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "up": referenced volume must be of type emptyDir`},
		{"none", `spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "none"`},
	})
}

func TestValidateScheduling(t *testing.T) {
	checkSpecs(t, "", []refused{
		{"{containers: [{name: a, image: i}], tolerations: [{operator: Equal}]}",
			"spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty"},
		{"{containers: [{name: a, image: i}], tolerations: [{key: k, operator: Exists, value: v}]}", "spec.tolerations[0].operator: Invalid value: "},
		{"{containers: [{name: a, image: i}], tolerations: [{key: k, effect: Never}]}", `spec.tolerations[0].effect: Unsupported value: "Never"`},
		{"{containers: [{name: a, image: i}], tolerations: [{key: k, effect: NoSchedule, tolerationSeconds: 1}]}",
			"spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"},
		{"{containers: [{name: a, image: i}], resources: {requests: {ephemeral-storage: 1Gi}}}",
			`spec.resources.requests[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"`},
		{"{containers: [{name: a, image: i}], resources: {requests: {disk: 1}}}",
			`spec.resources.requests[disk]: Invalid value: "disk": must be a standard resource type or fully qualified`},
		{"{containers: [{name: a, image: i}], resources: {limits: {hugepages-2Mi: 3Mi, memory: 1}}}",
			`spec.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`},
		{"{containers: [{name: a, image: i}], resources: {claims: []}}", "spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"},
		{"{containers: [{name: a, image: i}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}",
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"},
		{"{containers: [{name: a, image: i}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
			"[{key: k, operator: In}]}]}}}}",
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be " +
				"specified when `operator` is 'In' or 'NotIn'"},
		{"{containers: [{name: a, image: i}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: " +
			"{}, topologyKey: 'a/b/c'}]}}}", "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: \"a/b/c\""},
		{"{containers: [{name: a, image: i}], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, " +
			"podAffinityTerm: {topologyKey: z}}]}}}",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"},
		{"{containers: [{name: a, image: i}], topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}",
			"spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
		{"{containers: [{name: a, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: Cry}]}",
			`spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Cry"`},
		{"{containers: [{name: a, image: i}], securityContext: {sysctls: [{name: A}]}}",
			`spec.securityContext.sysctls[0].name: Invalid value: "A": must have at most 253 characters`},
		{"{containers: [{name: a, image: i}], hostNetwork: true, securityContext: {sysctls: [{name: net.core.x}]}}",
			`spec.securityContext.sysctls[0].name: Invalid value: "net.core.x": may not be specified when 'hostNetwork' is true`},
		{"{containers: [{name: a, image: i}], hostnameOverride: a, setHostnameAsFQDN: true}",
			"spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"},
		{"{containers: [{name: a, image: i}], hostPID: true, shareProcessNamespace: true}",
			"spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled"},
		{"{containers: [{name: a, image: i}], hostUsers: false, hostIPC: true}", "spec.HostIPC: Forbidden: when `hostUsers` is false"},
		{"{containers: [{name: a, image: i, volumeDevices: [{name: v, devicePath: /d}]}], volumes: [{name: v, persistentVolumeClaim: " +
			"{claimName: c}}], hostUsers: false}", "spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false"},
	})
}

// Where one fault has several messages, all of kube-apiserver's v1.37.2 are there.
func TestEveryMessageOfAFault(t *testing.T) {
	for text, want := range map[string][]string{
		"{volumeMounts: [{name: v, mountPath: /d}], volumeDevices: [{name: v, devicePath: /d}]}": {
			`spec.containers[0].volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices`,
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/d": must not already exist as a path in volumeDevices`,
			`spec.containers[0].volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts`,
			`spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts`,
		},
		"{resources: {limits: {hugepages-2Mi: 3Mi, memory: 1}}}": {
			`spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
			`spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
		},
		"{readinessProbe: {exec: {command: [x]}, successThreshold: 2, terminationGracePeriodSeconds: -1}}": {
			"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: -1: must be greater than 0",
			"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: -1: must not be set for readinessProbes",
		},
	} {
		pod := fromYAML(t, "metadata: {name: web, namespace: default}\n"+
			"spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], containers: [{name: a, image: i, "+text[1:]+"]}")
		setAllDefaults(pod)
		var got []string
		for _, err := range validateCreate(pod) {
			got = append(got, err.Error())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n  got: %s\n want: %s", text, strings.Join(got, "\n       "), strings.Join(want, "\n       "))
		}
	}
}
