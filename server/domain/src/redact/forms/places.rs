//! Secrets that are known by what stands around them.
//!
//! In headers, commands, files and addresses.

use super::super::rule_set::Rules;
use super::{Asked, Form, forms, rule, words};

#[rustfmt::skip]
pub(super) const PLACES: &[Form] = forms! {
    "Cookie and Set-Cookie headers (RFC 6265)", words(&["cookie"]),
    r#"(?i)cookie2?["']?\s*[:=]\s*["']?(?P<v>[^\s=;"']+=[^"']+)"#,
    [("Cookie: sid=abcdefabcdef; b=2", "abcdefabcdef"), ("set-cookie: id=xyz123xyz; Path=/; HttpOnly", "xyz123xyz")],
    ["cookie: none", "cookies are kept"];
    "Azure storage and service bus connection strings (learn.microsoft.com)", rule(Rules::KEY_VALUE),
    r"(?i)(?:account|access)key=(?P<v>[0-9A-Za-z+/=]{16,})",
    [("AccountName=a;AccountKey=abcdefghijklmnop0123456789==;EndpointSuffix=x", "abcdefghij"), ("SharedAccessKeyName=r;SharedAccessKey=ABCDEFGHIJKLMNOP012345=", "ABCDEFGHIJ")],
    ["AccountKey=", "accesskey=x"];
    "credentials behind an option of a command (seen in shells and process lists)", rule(Rules::KEY_VALUE),
    r#"(?i)(?:^|[\s"'\[,(])--?[a-z0-9_-]*(?:password|passwd|passphrase|pass|pwd|token|secret|api-?key|access-?key|private-?key)(?:[ =]+|["'] *, *)(?:"(?P<v>[^"]+)"|'(?P<w>[^']+)'|(?P<x>[^\s"'-]\S{3,}))"#,
    [("mysql --password hunter2 -h db", "hunter2"), ("['x', '--auth-token', 'abc def']", "abc def")],
    ["--password-file-mode", "--token -x"];
    "curl and wget users (curl.se/docs/manpage.html)", words(&["-u ", "-us"]),
    r#"(?:^|\s)(?:-u +|--(?:proxy-)?user[ =]+)["']?[^\s"':]+:(?P<v>[^\s"']+)"#,
    [("curl -u bob:hunter2 https://h/x", "hunter2"), ("curl --user 'bob:s3cret/x' h", "s3cret/x")],
    ["docker run -u 1000 x", "sort -u file"];
    "curl users without a blank (curl.se/docs/manpage.html)", words(&["curl"]),
    r#"\bcurl\b.*?\s-u=?["']?[^\s"':]+:(?P<v>[^\s"']+)"#,
    [("curl -ubob:hunter2 https://h/x", "hunter2"), ("curl -s -u'bob:s3cret/x' h", "s3cret/x")],
    ["curl -u", "curl -udp 1"];
    "netrc (curl.se/docs/netrc.html)", rule(Rules::KEY_VALUE),
    r"(?i)\b(?:machine|login|account|default)\s+\S+.*?\bpassword\s+(?P<v>\S+)",
    [("machine h login bob password hunter2", "hunter2"), ("login bob\tpassword s3cret", "s3cret")],
    ["the login page asks", "login bob password"];
    "elements of XML (Maven settings, web.config, SOAP)", rule(Rules::KEY_VALUE),
    r"(?i)<[\w:.-]*(?:password|passwd|passphrase|pwd|token|secret|api_?key|privatekey)[\w:.-]*(?:\s[^<>]*)?>\s*(?P<v>[^<>\s][^<>]*)<",
    [("<password>hunter2</password>", "hunter2"), ("<wsse:Password Type=\"t\">s3cret</wsse:Password>", "s3cret")],
    ["<password></password>", "<token/>"];
    "responses of Digest authentication (RFC 7616)", words(&["response="]),
    r#"(?i)\bresponse="?(?P<v>[0-9a-f]{32,})"#,
    [("Digest username=\"a\", response=\"6629fae49393a05397450978507c4ef1\"", "6629fae493"), ("response=0123456789abcdef0123456789abcdef", "0123456789")],
    ["response=200", "response=\"ok\""];
    "signatures of AWS version 4 (docs.aws.amazon.com)", rule(Rules::QUERY),
    r"(?i)signature=(?P<v>[0-9a-f]{32,})",
    [("AWS4-HMAC-SHA256 SignedHeaders=host, Signature=0123456789abcdef0123456789abcdef0123", "0123456789"), ("&X-Amz-Signature=abcdefabcdefabcdefabcdefabcdefabcdef", "abcdefabcd")],
    ["signature=none", "Signature=abc"];
    "passwords with a slash in URLs (RFC 3986 demands %2F, people do not)", rule(Rules::URL_USER),
    r#"://(?P<v>[^/\s:@"'<>]+:[^\s"'<>@/]*[^0-9\s"'<>@/][^\s"'<>@/]*/[^\s"'<>@]*)@"#,
    [("https://bob:s3c/ret@h/x", "s3c/ret"), ("postgres://u:p/w/d@db:5432/x", "p/w/d")],
    ["https://h:8080/a@b", "https://h/a:b/c@d"];
    "passwords in data source names of Go (github.com/go-sql-driver/mysql)", words(&["@tcp(", "@unix("]),
    r#"(?:^|[\s"'=`])[\w.-]+:(?P<v>[^\s"'`@/]{3,})@(?:tcp|unix)\("#,
    [("app:hunter2@tcp(db:3306)/app", "hunter2"), ("DSN=\"root:s3cret!x@unix(/run/mysql.sock)/app\"", "s3cret")],
    ["user@tcp(db:3306)/app", "app:@tcp(db)/app"];
    "accounts in SQL (dev.mysql.com and oracle.com, CREATE USER)", words(&["identified"]),
    r#"(?i)\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?["'](?P<v>[^"']+)["']"#,
    [("CREATE USER a IDENTIFIED BY 'hunter2'", "hunter2"), ("identified with x by \"s3cret\";", "s3cret")],
    ["identified by its name", "IDENTIFIED BY ''"];
    "passwords in SQL and in commands of databases (postgresql.org, CREATE ROLE)", rule(Rules::KEY_VALUE),
    r#"(?i)\bpassword\s+(?:"(?P<v>[^"]{3,})"|'(?P<w>[^']{3,})')"#,
    [("ALTER ROLE a WITH PASSWORD 'hunter2'", "hunter2"), ("ENCRYPTED PASSWORD \"s3cret\"", "s3cret")],
    ["PASSWORD ''", "password 'x"];
    "passwords in redis.conf (redis.io/docs)", rule(Rules::KEY_VALUE),
    r#"(?i)\b(?:requirepass|masterauth)\s+["']?(?P<v>[^\s"']{3,})"#,
    [("requirepass hunter2", "hunter2"), ("config set masterauth \"s3cret\"", "s3cret")],
    ["requirepass", "masterauth \"\""];
    "MySQL clients with the password in the option (dev.mysql.com)", words(&["mysql", "mariadb"]),
    r#"\b(?:mysql\w*|mariadb[\w-]*)\b.*?\s-p["']?(?P<v>[^\s"']{3,})"#,
    [("mysql -u root -phunter2 app", "hunter2"), ("mysqldump -p's3cret' db", "s3cret")],
    ["mysql -u root -p app", "mariadb --port 3306"];
    "sshpass (linux.die.net/man/1/sshpass)", rule(Rules::KEY_VALUE),
    r#"\bsshpass\s+-p\s*["']?(?P<v>[^\s"']+)"#,
    [("sshpass -p hunter2 ssh h", "hunter2"), ("sshpass -p's3cret' scp a b", "s3cret")],
    ["sshpass -f file ssh h", "sshpass -e ssh h"];
    "sign-ins at container registries (docs.docker.com)", words(&["docker login", "podman login", "registry login"]),
    r#"\b(?:docker|podman|registry) login\b.*?\s-p[ =]*["']?(?P<v>[^\s"']{3,})"#,
    [("docker login -u bob -p hunter2 r.example.org", "hunter2"), ("podman login -p=s3cret r", "s3cret")],
    ["docker login registry.example.org", "docker login --password-stdin"];
    "redis-cli (redis.io/docs)", words(&["redis-cli"]),
    r#"\bredis-cli\b.*?\s-a\s+["']?(?P<v>[^\s"']{3,})"#,
    [("redis-cli -h db -a hunter2 ping", "hunter2"), ("redis-cli -a 's3cret' info", "s3cret")],
    ["redis-cli -h db ping", "redis-cli --all"];
    "LDAP clients (linux.die.net/man/1/ldapsearch)", words(&["ldap"]),
    r#"\bldap(?:search|add|modify|delete|passwd|whoami|compare)\b.*?\s-w\s+["']?(?P<v>[^\s"']{3,})"#,
    [("ldapsearch -x -D cn=a -w hunter2 -b dc=x", "hunter2"), ("ldapmodify -w 's3cret' -f x", "s3cret")],
    ["ldapsearch -x -W", "ldap server -w"];
    "Samba clients (samba.org/samba/docs)", words(&["smbclient", "rpcclient"]),
    r#"\b(?:smb|rpc)client\b.*?\s-U\s*["']?[^\s%"']+%(?P<v>[^\s"']+)"#,
    [("smbclient //h/x -U bob%hunter2", "hunter2"), ("rpcclient -U 'a%s3cret' h", "s3cret")],
    ["smbclient //h/x -U bob", "smbclient -L h"];
    "passwords of openssl (docs.openssl.org, pass phrase options)", rule(Rules::KEY_VALUE),
    r#"-pass(?:in|out)?\s+["']?pass:(?P<v>[^\s"']+)"#,
    [("openssl rsa -passin pass:hunter2 -in k", "hunter2"), ("openssl enc -pass 'pass:s3cret'", "s3cret")],
    ["openssl rsa -passin file:x", "openssl rsa -passin pass: -in k"];
    "htpasswd (httpd.apache.org/docs)", rule(Rules::KEY_VALUE),
    r#"\bhtpasswd\s+-\w*b\w*\s+(?:-\w+\s+)*\S+\s+\S+\s+["']?(?P<v>[^\s"']+)"#,
    [("htpasswd -b file bob hunter2", "hunter2"), ("htpasswd -cbB f bob 's3cret'", "s3cret")],
    ["htpasswd -c file bob", "htpasswd file bob"];
    "settings of .NET and Ant (learn.microsoft.com, web.config)", rule(Rules::KEY_VALUE),
    r#"(?i)\b(?:key|name)=["'][\w:.-]*(?:password|passwd|pwd|secret|token|api_?key)[\w:.-]*["']\s+value=["'](?P<v>[^"']+)["']"#,
    [("<add key=\"DbPassword\" value=\"hunter2\" />", "hunter2"), ("<property name='api.token' value='s3cret'/>", "s3cret")],
    ["<add key=\"DbPassword\" value=\"\" />", "<add key=\"Theme\" value=\"dark\" />"];
    "incoming webhooks of Microsoft Teams (learn.microsoft.com)", words(&["webhook.office"]),
    r#"webhook\.office(?:365)?\.com/webhookb2/(?P<v>[^\s"'<>]+)"#,
    [("https://x.webhook.office.com/webhookb2/a1@b2/IncomingWebhook/abcdefabcdef/c3", "abcdefabcdef"), ("webhook.office.com/webhookb2/xyzxyz", "xyzxyz")],
    ["https://x.webhook.office.com/", "see webhook.office.com"];
    "webhooks of Zapier (help.zapier.com)", words(&["hooks.zapier"]),
    r#"hooks\.zapier\.com/hooks/catch/(?P<v>[^\s"'<>]+)"#,
    [("https://hooks.zapier.com/hooks/catch/1234567/abcdef/", "abcdef"), ("hooks.zapier.com/hooks/catch/1/xyzxyz", "xyzxyz")],
    ["https://hooks.zapier.com/", "hooks.zapier.com/hooks"];
    "Oracle accounts in addresses of JDBC (docs.oracle.com)", words(&["jdbc:oracle"]),
    r"jdbc:oracle:\w+:[^\s/@]+/(?P<v>[^\s@]+)@",
    [("jdbc:oracle:thin:scott/hunter2@//db:1521/x", "hunter2"), ("u=jdbc:oracle:oci:a/s3cret@db", "s3cret")],
    ["jdbc:oracle:thin:@//db:1521/x", "jdbc:oracle:thin:scott@db"];
    "commands that set keys of AWS (docs.aws.amazon.com/cli)", rule(Rules::KEY_VALUE),
    r"(?i)secret_access_key\s+(?P<v>[0-9A-Za-z+/]{40})\b",
    [("aws configure set aws_secret_access_key wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz", "wJalrXUtnFEMI"), ("secret_access_key 0123456789abcdefghij0123456789abcdefghij", "0123456789")],
    ["secret_access_key is missing", "aws_secret_access_key"];
    "bot tokens of Discord (discord.com/developers/docs/reference)", Asked::Dots,
    r"\b[MNO][0-9A-Za-z_-]{23,25}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,38}",
    [("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "ZnCjm1XVW7"), ("x=NzkyNzE1NDU0MTk2MDg4ODQy.X-hvzA.Ovy4MCQywSkoMRRclStW4xAYK7I y", "Ovy4MCQywS")],
    ["MTk4.Cl2FMQ.Zn", "ordinary.sixsix.words"];
};
