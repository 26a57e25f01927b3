// FlatJson.cs: metadata with names, as a JSON object of strings: what others see of a candidate stays
// readable. Whatever is no such object is read as one entry named "text".
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace Baton.Excalibur
{
    internal static class FlatJson
    {
        internal static string Write(IDictionary<string, string> map)
        {
            var b = new StringBuilder("{");
            foreach (var pair in map)
            {
                if (b.Length > 1)
                    b.Append(",");
                Quote(b, pair.Key);
                b.Append(":");
                Quote(b, pair.Value ?? "");
            }
            return b.Append("}").ToString();
        }

        static void Quote(StringBuilder b, string text)
        {
            b.Append('"');
            foreach (char c in text)
                if (c == '"' || c == '\\')
                    b.Append('\\').Append(c);
                else if (c < ' ')
                    b.AppendFormat("\\u{0:x4}", (int)c);
                else
                    b.Append(c);
            b.Append('"');
        }

        internal static IDictionary<string, string> Read(string text)
        {
            var map = new Dictionary<string, string>();
            int at = 1;
            if (text == "" || text == "{}")
                return map;
            if (text[0] == '{')
                for (string key; (key = Unquote(text, ref at)) != null && Skip(text, ref at, ':');)
                {
                    string value = Unquote(text, ref at);
                    if (value == null)
                        break;
                    map[key] = value;
                    if (!Skip(text, ref at, ','))
                        return map;
                }
            return new Dictionary<string, string> { ["text"] = text };
        }

        static bool Skip(string text, ref int at, char c)
        {
            if (at >= text.Length || text[at] != c)
                return false;
            at++;
            return true;
        }

        static string Unquote(string text, ref int at)
        {
            var b = new StringBuilder();
            if (!Skip(text, ref at, '"'))
                return null;
            for (; at < text.Length && text[at] != '"'; at++)
                if (text[at] != '\\' || at + 1 >= text.Length)
                    b.Append(text[at]);
                else if (text[++at] == 'u' && at + 4 < text.Length)
                {
                    b.Append((char)int.Parse(text.Substring(at + 1, 4), NumberStyles.HexNumber));
                    at += 4;
                }
                else
                    b.Append(text[at]);
            return Skip(text, ref at, '"') ? b.ToString() : null;
        }
    }
}
