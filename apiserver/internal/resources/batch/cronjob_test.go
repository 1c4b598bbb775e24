package batch

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// TestTimeZones: kube-apiserver v1.37.2's messages. What an older one stored may stay.
func TestTimeZones(t *testing.T) {
	const (
		utc, tz, mars = "schedule: '@daily', timeZone: Etc/UTC", "schedule: TZ=UTC @daily", "schedule: '@daily', timeZone: Mars/Base"
		explicit      = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
	)
	for _, test := range []struct{ old, now, want string }{
		{"", utc, ""},
		{"", "schedule: '@daily', timeZone: ''", `spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string`},
		{"", "schedule: '@daily', timeZone: Local", `spec.timeZone: Invalid value: "Local": ` + explicit},
		{"", "schedule: '@daily', timeZone: local", `spec.timeZone: Invalid value: "local": ` + explicit +
			`; spec.timeZone: Invalid value: "local": unknown time zone local`},
		{"", "schedule: '@daily', timeZone: Etc//UTC", `spec.timeZone: Invalid value: "Etc//UTC": unknown time zone Etc//UTC`},
		{"", mars, `spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base`},
		{mars, mars, ""},
		{utc, mars, `spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base`},
		{"", tz, `spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`},
		{utc, tz, `spec.schedule: Invalid value: "TZ=UTC @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`},
		{tz, tz, ""},
		{tz, tz + ", timeZone: Etc/UTC",
			`spec.schedule: Invalid value: "TZ=UTC @daily": cannot use both timeZone field and TZ or CRON_TZ in schedule`},
	} {
		parse := func(text string) *batchv1.CronJobSpec {
			c := &batchv1.CronJob{}
			const pods = "jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}}}"
			if err := yaml.UnmarshalStrict([]byte("{spec: {"+text+", "+pods+"}}"), c); err != nil {
				t.Fatal(err)
			}
			defaultCronJob(&c.Spec)
			return &c.Spec
		}
		var old *batchv1.CronJobSpec
		if test.old != "" {
			old = parse(test.old)
		}
		var said []string
		for _, err := range validateCronJob(parse(test.now), old) {
			said = append(said, err.Error())
		}
		if got := strings.Join(said, "; "); got != test.want {
			t.Errorf("%s after %q:\ngot  %s\nwant %s", test.now, test.old, got, test.want)
		}
	}
}
