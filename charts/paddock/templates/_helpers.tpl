{{- define "paddock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Short enough for the names that are made of it, whose pods' names are labels of hosts. */}}
{{- define "paddock.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains (include "paddock.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "paddock.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "paddock.headless" -}}
{{- include "paddock.fullname" . }}-members
{{- end }}

{{- define "paddock.domain" -}}
{{- include "paddock.headless" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "paddock.selector" -}}
app.kubernetes.io/name: {{ include "paddock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "paddock.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{ include "paddock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "paddock.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "paddock.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "paddock.fullname" .) }}
{{- end }}

{{- define "paddock.membersSecret" -}}
{{ .Values.tls.members.secretName | default (printf "%s-members-tls" (include "paddock.fullname" .)) }}
{{- end }}

{{- define "paddock.clientsSecret" -}}
{{ .Values.tls.clients.secretName | default (printf "%s-clients-tls" (include "paddock.fullname" .)) }}
{{- end }}

{{- /* Number of members in the list. */}}
{{- define "paddock.members" -}}
{{ min (.Values.members | default .Values.replicas | int) (.Values.replicas | int) }}
{{- end }}

{{- /* 1,2,3 */}}
{{- define "paddock.numbers" -}}
{{ untilStep 1 (add1 (include "paddock.members" .) | int) 1 | join "," }}
{{- end }}

{{- /* Settings but for the list of members: a change of them restarts the pods. */}}
{{- define "paddock.settings" -}}
data_dir = "/data"
listen = "0.0.0.0:{{ .Values.ports.client }}"
metrics_listen = "0.0.0.0:{{ .Values.ports.metrics }}"
# A pod's own name may be known late.
bind_tries = 0
{{- range $key, $value := .Values.settings }}
{{ $key }} = {{ $value | toJson }}
{{- end }}

[ensemble]
listen_on_all_addresses = true
{{- range $key, $value := .Values.ensembleSettings }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- if .Values.tls.members.enabled }}

[ensemble.tls]
mode = "required"
key_store = "/tls/members/tls.key"
certificates = "/tls/members/tls.crt"
trust_store = "/tls/members/ca.crt"
{{- end }}
{{- if .Values.tls.clients.enabled }}

[tls]
listen = "0.0.0.0:{{ .Values.ports.secureClient }}"
mode = "separate"
key_store = "/tls/clients/tls.key"
certificates = "/tls/clients/tls.crt"
client_auth = {{ .Values.tls.clients.clientAuth | quote }}
{{- if ne .Values.tls.clients.clientAuth "none" }}
trust_store = "/tls/clients/ca.crt"
{{- end }}
{{- end }}
{{- end }}

{{- define "paddock.configMapData" -}}
paddock.toml: |
  # The chart's: a change of the list of members counts at once, without a restart.
  {{- include "paddock.settings" . | nindent 2 }}
  {{- range $number := untilStep 1 (add1 (include "paddock.members" .) | int) 1 }}

  [[ensemble.member]]
  id = {{ $number }}
  host = "{{ include "paddock.fullname" $ }}-{{ $number }}.{{ include "paddock.domain" $ }}"
  client_port = {{ $.Values.ports.client }}
  {{- end }}
{{- end }}

{{- /* True if fewer pods are asked for than there are, or nobody can say, as with `helm template`. */}}
{{- define "paddock.leaves" -}}
{{- if .Release.IsUpgrade }}
{{- $present := lookup "apps/v1" "StatefulSet" .Release.Namespace (include "paddock.fullname" .) }}
{{- if or (not $present) (gt (dig "spec" "replicas" 0 $present | int) (.Values.replicas | int)) }}true{{ end }}
{{- end }}
{{- end }}

{{- define "paddock.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "paddock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}
